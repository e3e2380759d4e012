"""Figures of tests/load/experiment: one line for a run, and the table and the plots of all.

    plot.py line SERVER THROUGH WORK CLIENTS REPORT SERVER_TICKS PROXY_TICKS SECONDS SERVER_KIB HZ
    plot.py draw FOLDER        reads FOLDER/experiment.tsv, writes table.md and *.svg beside it
"""

import collections
import json
import math
import sys

COLUMNS = ["server", "through", "work", "clients", "connected", "pace", "p50_ms", "p95_ms", "p99_ms", "p95_over_ideal",
           "p99_over_ideal", "errors", "server_us", "proxy_us", "generator_us", "server_mib"]
COLOURS = {"direct": "#888888", "haproxy": "#2b7bba", "myriad": "#d1495b"}


def line(server, through, work, clients, report, server_ticks, proxy_ticks, seconds, server_kib, hz):
    try:
        with open(report, encoding="utf-8") as file:
            it = json.load(file)
    except ValueError:
        it = {"clients": 0}
    pace = it.get("work_per_second", 0.0)
    cpu = lambda ticks: float(ticks) / float(hz) / (pace * float(seconds)) * 1e6 if pace else float("nan")
    latency = it.get("latency", {})
    milliseconds = lambda name: "%.2f" % (latency.get(name, 0) / 1000)
    over = lambda name: "%.2f" % (it.get(name) or float("nan"))
    errors = sum(error["count"] for error in it.get("errors", []))
    print("\t".join([server, through, work, clients, str(it["clients"]), "%.0f" % pace, milliseconds("p50_us"),
                     milliseconds("p95_us"), milliseconds("p99_us"), over("p95_over_ideal"), over("p99_over_ideal"), str(errors),
                     "%.1f" % cpu(server_ticks), "%.1f" % cpu(proxy_ticks),
                     "%.1f" % it.get("generator", {}).get("cpu_us_per_statement", float("nan")),
                     "%.0f" % (float(server_kib) / 1024)]))


def draw(folder):
    with open(folder + "/experiment.tsv", encoding="utf-8") as file:
        rows = [dict(zip(COLUMNS, row.rstrip("\n").split("\t"))) for row in file]
    with open(folder + "/table.md", "w", encoding="utf-8") as file:
        file.write(table(rows))
    for server, work in sorted({(row["server"], row["work"]) for row in rows}):
        some = [row for row in rows if (row["server"], row["work"]) == (server, work)]
        for column, label in [("pace", "pieces of work a second"), ("p95_ms", "95 % within, ms")]:
            with open("%s/%s-%s-%s.svg" % (folder, server, work, column), "w", encoding="utf-8") as file:
                file.write(svg(some, column, "%s, %s: %s" % (server, work, label)))


def table(rows):
    heads = ["server", "through", "work", "clients", "a second", "p50 ms", "p95 ms", "p99 ms", "p95 / ideal", "p99 / ideal", "errors",
             "server CPU us", "proxy CPU us", "server MiB"]
    names = ["server", "through", "work", "connected", "pace", "p50_ms", "p95_ms", "p99_ms", "p95_over_ideal", "p99_over_ideal",
             "errors", "server_us", "proxy_us", "server_mib"]
    lines = ["| " + " | ".join(heads) + " |", "|" + "---|" * len(heads)]
    lines += ["| " + " | ".join(row[name].replace("nan", "-") for name in names) + " |" for row in rows]
    return "\n".join(lines) + "\n"


def svg(rows, column, title):
    """A plot of one column over the number of clients, both axes logarithmic, a line for each way."""
    width, height, left, bottom, top, right = 640, 360, 70, 40, 40, 90
    lines = collections.OrderedDict()
    for row in rows:
        if float(row[column]) > 0 and int(row["connected"]) > 0:
            lines.setdefault(row["through"], []).append((int(row["clients"]), float(row[column])))
    points = [point for line in lines.values() for point in line]
    out = ['<svg xmlns="http://www.w3.org/2000/svg" width="%d" height="%d" font-family="sans-serif" font-size="12">' % (width, height),
           '<rect width="100%" height="100%" fill="white"/>', '<text x="%d" y="20" font-size="14">%s</text>' % (left, title)]
    if points:
        xs = [math.log10(x) for x, _ in points]
        low = math.floor(math.log10(min(y for _, y in points)))
        high = max(math.ceil(math.log10(max(y for _, y in points))), low + 1)
        spread = max(max(xs) - min(xs), 1e-9)
        place = lambda x, y: (left + (math.log10(x) - min(xs)) / spread * (width - left - right),
                              height - bottom - (math.log10(y) - low) / (high - low) * (height - bottom - top))
        for power in range(low, high + 1):
            _, y = place(points[0][0], 10.0 ** power)
            out.append('<line x1="%d" x2="%d" y1="%.1f" y2="%.1f" stroke="#dddddd"/>' % (left, width - right, y, y))
            out.append('<text x="%d" y="%.1f" text-anchor="end">%g</text>' % (left - 6, y + 4, 10.0 ** power))
        for clients in sorted({x for x, _ in points}):
            x, _ = place(clients, 10.0 ** low)
            out.append('<text x="%.1f" y="%d" text-anchor="middle">%s</text>' % (x, height - bottom + 18, format(clients, ",")))
        for through, line in lines.items():
            colour = COLOURS.get(through, "black")
            path = " ".join("%.1f,%.1f" % place(x, y) for x, y in line)
            out.append('<polyline points="%s" fill="none" stroke="%s" stroke-width="2"/>' % (path, colour))
            x, y = place(*line[-1])
            out.append('<text x="%.1f" y="%.1f" fill="%s">%s</text>' % (x + 6, y + 4, colour, through))
        out.append('<text x="%d" y="%d" text-anchor="middle">clients</text>' % ((left + width - right) / 2, height - 6))
    return "\n".join(out) + "\n</svg>\n"


if __name__ == "__main__":
    {"line": line, "draw": draw}[sys.argv[1]](*sys.argv[2:])
