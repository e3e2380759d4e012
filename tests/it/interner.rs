//! Session states under many threads at once, which the pure rooms' own tests may not start.

use myriad::session::{Interner, StateSpec};

#[test]
fn states_made_and_dropped_by_many_threads() {
    let interner = Interner::new();
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                for n in 0..20_000_u32 {
                    let schema = n.wrapping_mul(7).to_le_bytes()[..1].into();
                    let spec = StateSpec { schema: Some(schema), ..StateSpec::default() };
                    assert_eq!(*interner.intern(spec.clone()).spec(), spec);
                }
            });
        }
    });
    assert!(interner.is_empty());
}
