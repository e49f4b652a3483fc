//! The whole loop in several processes, over loopback, gives the bits of one process that accumulates as many parts.

use std::net::TcpListener;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use experiments::cycle::{Event, Extensions, RunOptions, RunSettings, RunSummary, run};
use experiments::{Device, Prepared};
use models::training::distributed::{Alone, Environment, Loopback, Patience, Transport};

use crate::cycle::{contents, settings};
use crate::prepared;

const PATIENCE: Patience = Patience { meeting: Duration::from_secs(60), silence: Duration::from_secs(300) };

fn go(prepared: &Prepared, settings: &RunSettings, out: &Path, transport: Arc<dyn Transport>) -> RunSummary {
    let options = RunOptions {
        out,
        resume: false,
        preset: "tiny",
        seed: 5,
        device: &Device::Cpu,
        transport,
        stop: None,
        observer: &mut |_: Event<'_>| {},
        runs_on: "cpu".to_owned(),
        command: "refactor-vla run".to_owned(),
        extensions: Extensions::default(),
    };
    run(prepared, settings, options).unwrap().unwrap()
}

#[test]
fn two_processes_give_the_bits_of_two_accumulated_parts() {
    let prepared = prepared();
    let folder = tempfile::tempdir().unwrap();
    let (one, two) = (folder.path().join("one"), folder.path().join("two"));
    let mut several = settings();
    several.cycle.iterations = 1;
    let mut accumulated = several.clone();
    accumulated.world_model.train.accumulation = 2;
    accumulated.amortizer.train.accumulation = 2;
    accumulated.wake.emitter.train.accumulation = 2;
    accumulated.wake.decoder.train.accumulation = 2;
    let expected = go(&prepared, &accumulated, &one, Arc::new(Alone::default()));

    let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let summaries: Vec<RunSummary> = std::thread::scope(|scope| {
        let rank = |rank: usize| {
            let (prepared, several, two) = (&prepared, &several, &two);
            scope.spawn(move || {
                let environment = Environment { rank, world: 2, local_rank: rank, address: "127.0.0.1".into(), port };
                go(prepared, several, two, Arc::new(Loopback::connect(&environment, PATIENCE).unwrap()))
            })
        };
        let threads: Vec<_> = (0..2).map(rank).collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).collect()
    });
    assert_eq!(summaries[0], summaries[1], "all processes have the result");
    assert_eq!(summaries[0], expected);
    let (wanted, found) = (contents(&one), contents(&two));
    let mut weights = 0;
    for (name, bytes) in wanted.iter().filter(|(name, _)| name.ends_with("model.safetensors")) {
        // The header records the number of parts; the weights are after it.
        let body = |bytes: &[u8]| bytes[8 + u64::from_le_bytes(bytes[..8].try_into().unwrap()) as usize..].to_vec();
        assert!(body(&found[name]) == body(bytes), "{name} differs");
        weights += 1;
    }
    assert!(weights >= 6, "{weights}");
}
