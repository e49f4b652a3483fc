//! Same corpus, same settings, same bytes: for any number of threads.

use compression::{Config, CostKind};

use crate::corpora::{compressed, config, corpus, fixture};

#[test]
fn threads_do_not_change_the_result() {
    let lambdas: Vec<String> =
        ["hof", "map", "map2", "ctx_thread_twice", "simple_hof"].into_iter().flat_map(fixture).collect();
    for programs in [fixture("nuts-bolts"), lambdas] {
        let corpus = corpus(&programs);
        for cost in [CostKind::Stitch, CostKind::Nats] {
            let result = |threads| format!("{:#?}", compressed(&corpus, &Config { threads, ..config(cost, 2, 3) }));
            let one = result(1);
            for threads in [2, 3] {
                // Compared by hand: the difference of two such texts is no help.
                assert!(one == result(threads), "{cost:?} differs with {threads} threads");
            }
        }
    }
}

#[test]
fn the_same_run_twice_gives_the_same_bytes() {
    let programs = fixture("lio_test1");
    let run = || format!("{:?}", compressed(&corpus(&programs), &config(CostKind::Nats, 3, 3)));
    assert_eq!(run(), run());
}
