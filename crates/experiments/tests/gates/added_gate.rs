//! A new gate is one file and one line: this file has the gate, and one line of the test adds it to those of the settings.

use compression::Candidate;
use experiments::cycle::classes::Classes;
use experiments::cycle::corpus::{Corpus, Subject};
use experiments::cycle::demonstrations::Demonstrations;
use experiments::cycle::gates::{Gate, Gates, RecordedCalls, Scene, gates_of};
use experiments::cycle::refactoring::grown;
use experiments::cycle::segment_kernel::SegmentKernel;
use experiments::cycle::settings::CycleSettings;
use experiments::{Device, Result, resolve};
use report::{Figure, Verdict};

use super::tiny::tiny;

/// Rejects abstractions with more parameters than a person would remember.
struct Memorable {
    most: usize,
}

impl Gate for Memorable {
    fn name(&self) -> &'static str {
        "memorable"
    }

    fn judge(&self, candidate: &Candidate, _: &Scene<'_>) -> Result<Figure> {
        let mut figure = Figure::inactive(self.name(), "");
        (figure.value, figure.limit) = (Some(candidate.arity as f64), Some(self.most as f64));
        figure.verdict = Verdict::Passed;
        if candidate.arity > self.most {
            figure.verdict = Verdict::Failed;
            figure.reason = format!("{} parameters, at most {} are allowed", candidate.arity, self.most);
        }
        Ok(figure)
    }
}

#[test]
fn a_new_gate_is_one_file_and_one_line() {
    let (prepared, teacher) = tiny();
    let few = [
        "refactor.max_steps=3000",
        "refactor.max_judged=3",
        "refactor.max_arity=3",
        "classes.classes=4",
        "classes.kernel=monte_carlo",
        "classes.starts=2",
        "gates.returns=false",
        "gates.soundness_quantile=1",
    ];
    let cycle: CycleSettings = resolve("tiny", &few.map(str::to_owned)).unwrap();
    let loaded = &teacher.loaded;
    let (precision, discount) = (loaded.parameters.precision(), loaded.record.model.discount);
    let table = prepared.table(loaded.record.scales.clone(), &Device::Cpu, precision, discount).unwrap();
    let demonstrations = Demonstrations::new(&prepared, &cycle.segments).unwrap();
    let kernel = SegmentKernel::MonteCarlo;
    let classes = Classes::new(&prepared, &demonstrations, &teacher, &table, &cycle.classes, &kernel, 5).unwrap();
    let corpus = Corpus::new(&demonstrations, &classes, &cycle.alphabet).unwrap();
    let training = demonstrations.which(false);
    let subjects: Vec<Subject> = training.iter().map(|at| Subject::Motion(*at)).collect();
    let calls = RecordedCalls {
        prepared: &prepared,
        demonstrations: &demonstrations,
        training: &training,
        subjects: &subjects,
        classes: &classes,
        corpus: &corpus,
    };
    let scene = calls.scene(&table, &loaded.model, &cycle.gates);

    let mut gates = gates_of(&cycle.gates, cycle.refactor.max_judged, 5);
    gates.push(Box::new(Memorable { most: 0 }));

    let gates = Gates::of(scene, gates);
    let mut observed = 0;
    let refactored = grown(&calls, &gates, None, &cycle, 1, None, &mut |_, judgement| {
        observed += usize::from(judgement.figure("memorable").is_some());
    });
    let refactored = refactored.unwrap().unwrap();
    assert!(observed > 0 && observed == refactored.summary.candidates.len());
    let mut rejected = 0;
    for candidate in &refactored.summary.candidates {
        let figure = candidate.judgement.figure("memorable").unwrap();
        assert_eq!((candidate.judgement.figures.len(), figure.limit), (4, Some(0.0)));
        assert_eq!(figure.rejects(), figure.value > Some(0.0));
        assert_eq!(candidate.judgement.admitted, !figure.rejects(), "no other gate rejects here: {candidate:?}");
        rejected += usize::from(figure.rejects());
    }
    assert!(rejected > 0, "{:?}", refactored.summary);
}
