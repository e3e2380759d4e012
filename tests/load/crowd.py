"""One line of the table of tests/load/crowd, and whether what it promises holds."""

import json
import sys


def main() -> int:
    server, report = sys.argv[1:3]
    clients, proxies, connections, allowed, resident, before, idle, after, ticks, hertz, seconds = map(int, sys.argv[3:])
    with open(report, encoding="utf-8") as file:
        run = json.load(file)
    latency = run["latency"]
    errors = sum(error["count"] for error in run["errors"])
    columns = {
        "server": server,
        "clients": f"{run['clients']:,}",
        "proxies": proxies,
        "connect all s": f"{run['connecting_seconds']:.1f}",
        "statements": f"{run['statements']:,}",
        "fewest of a client": run["least_work_of_a_client"],
        "a second": f"{run['statements_per_second']:,.0f}",
        "p50 ms": f"{latency['p50_us'] / 1000:,.0f}",
        "p95 ms": f"{latency['p95_us'] / 1000:,.0f}",
        "p99 ms": f"{latency['p99_us'] / 1000:,.0f}",
        "p99 / ideal": f"{run['p99_over_ideal']:.2f}",
        "errors": errors,
        "KiB a client": f"{(idle - before) / clients:.2f}",
        "CPU % idle": f"{100 * ticks / hertz / seconds:.2f}",
        "proxies MiB before, idle, after": f"{before / 1024:.0f}, {idle / 1024:.0f}, {after / 1024:.0f}",
        "server's connections": connections,
        "server MiB": f"{resident / 1024:.0f}",
    }
    print("| " + " | ".join(columns) + " |")
    print("|" + "---|" * len(columns))
    print("| " + " | ".join(str(cell) for cell in columns.values()) + " |")
    wrong = [f"{error['count']} x {error['kind']}: {error['first']}" for error in run["errors"]]
    if run["clients"] != clients:
        wrong.append(f"only {run['clients']} clients came in")
    if run["least_work_of_a_client"] < 10:
        wrong.append(f"a client has done only {run['least_work_of_a_client']} statements: give them more --seconds")
    # Two of them may be ours, who ask.
    if connections > allowed + 2:
        wrong.append(f"the server had {connections} connections")
    for line in wrong:
        print(f"FAILED: {line}", file=sys.stderr)
    return 1 if wrong else 0


sys.exit(main())
