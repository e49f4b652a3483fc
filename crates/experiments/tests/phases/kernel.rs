//! D_φ on the embedded dataset: what is trained on it, and the classes that its forms give.

use clustering::nmi;
use experiments::amortizer_phase::{Teacher, train_amortizer};
use experiments::cycle::RunSettings;
use experiments::cycle::class_scores::{kernel_agreement, matched_scores};
use experiments::cycle::classes::Classes;
use experiments::cycle::demonstrations::Demonstrations;
use experiments::cycle::segment_kernel::SegmentKernel;
use experiments::cycle::settings::CycleSettings;
use experiments::kernel_agreement::{KernelOptions, kernel_agreement as compare_forms};
use experiments::trained::load_amortizer;
use experiments::windows::Windows;
use experiments::world_model_phase::train_world_model;
use experiments::{AmortizerSettings, Device, resolve};
use models::Precision;
use models::amortizer::Supervision;
use models::kernel::KernelForm;
use models::training::Progress;

use super::{launch, prepared, settings};

fn cycle(sets: &[&str]) -> CycleSettings {
    resolve("tiny", &sets.iter().map(|set| (*set).to_owned()).collect::<Vec<_>>()).unwrap()
}

#[test]
fn all_forms_of_the_kernel_make_similar_classes() {
    let prepared = prepared();
    let folder = tempfile::tempdir().unwrap();
    let place = |name: &str| folder.path().join(name);
    train_world_model(&prepared, &settings(&[]), launch(&place("a"), false, &mut |_| {}, None)).unwrap();
    let cycle = cycle(&["classes.classes=6"]);
    let teacher = Teacher::load(&place("a"), &Device::Cpu).unwrap().with_distances(&cycle);
    let student: AmortizerSettings =
        settings(&["train.steps=800", "train.warmup=10", "train.rate=0.004", "batch=64", "lessons=600"]);
    assert_eq!(student.supervision, Supervision::Kernel, "the default, because the loop uses it");

    let table = prepared.table(prepared.scales.clone(), &Device::Cpu, Precision::F32, 0.99).unwrap();
    let demonstrations = Demonstrations::new(&prepared, &cycle.segments).unwrap();
    let classes = |form: KernelForm| {
        let run = SegmentKernel::folder(form).map(place).unwrap_or_default();
        if !run.join("model.safetensors").is_file() {
            let mut silent = |_: &Progress| {};
            let launch = launch(&run, false, &mut silent, None);
            SegmentKernel::train(&prepared, form, &student, &teacher, launch).unwrap();
        }
        let kernel = SegmentKernel::load(form, &run, &Device::Cpu).unwrap();
        Classes::new(&prepared, &demonstrations, &teacher, &table, &cycle.classes, &kernel, 7).unwrap()
    };
    let exact = classes(KernelForm::MonteCarlo);
    for (form, least) in [(KernelForm::MonteCarlo, 0.999), (KernelForm::Amortized, 0.85), (KernelForm::Separable, 0.2)]
    {
        let found = classes(form);
        let compared = kernel_agreement(&found, &prepared, &demonstrations, &teacher, &table, &cycle.classes);
        let compared = compared.unwrap().unwrap();
        assert_eq!((compared.form, compared.starts, compared.samples), (form, 2, 2), "what was drawn is said");
        assert!(compared.segments > 30 && compared.pairs == compared.segments * (compared.segments - 1) / 2);
        assert!(compared.spearman.unwrap() > least, "{compared:?}");
        let alike = nmi(&exact.labels, &found.labels).unwrap();
        assert!(alike > if form == KernelForm::Separable { 0.1 } else { 0.5 }, "{form:?}: {alike}");
        // ε_t is in the unit of the distances that the gate compares with it.
        let training = demonstrations.which(false);
        let (epsilon, wanted) = (found.epsilon(&training, 0.5), exact.epsilon(&training, 0.5));
        if form == KernelForm::Amortized {
            assert!((epsilon / wanted - 1.0).abs() < 0.25, "{epsilon} {wanted}");
        }
        let matched = matched_scores(&found, &prepared, &demonstrations, &cycle.classes, 7).unwrap().unwrap();
        assert_eq!(matched.kernel.segments, matched.actions.segments);
        assert!(matched.kernel.nmi > 0.0 && matched.actions.nmi > 0.0);
    }

    // The forms side by side, on fragments: the same student, compared with the D_φ that it learned.
    let loaded = [load_amortizer(&place("amortizer"), &Device::Cpu).unwrap()];
    let metric = loaded[0].record.model.metric.unwrap();
    assert!(metric.scale > 0.0 && metric.kernel.samples == 2);
    let options = KernelOptions { fragments: 48, lessons: 16, steps: 2, ..KernelOptions::default() };
    let report =
        compare_forms(&prepared, &teacher, &loaded, options, &Device::Cpu, None, &mut |_| {}).unwrap().unwrap();
    let names: Vec<&str> = report.forms.iter().map(|form| form.form.as_str()).collect();
    assert_eq!(names, ["mc", "separable_vpk", "amortized", "raw windows"]);
    assert_eq!((report.horizon, report.starts, report.samples), (16, 2, 2));
    assert!(report.forms[2].spearman.unwrap() > 0.85, "{report:?}");
    assert!(report.forms.iter().all(|form| form.seconds_per_pair > 0.0));

    // Distances of another D_φ, or of an amortizer that learned something else, are not taken for these.
    let kernel = SegmentKernel::load(KernelForm::Amortized, &place("amortizer"), &Device::Cpu).unwrap();
    let mut other = cycle.classes.clone();
    other.samples = 3;
    let refused = Classes::new(&prepared, &demonstrations, &teacher, &table, &other, &kernel, 7);
    assert!(refused.err().unwrap().to_string().contains("was trained on another D_φ"));
    let distilled = settings(&["supervision=distillation"]);
    train_amortizer(&prepared, &distilled, Some(&teacher), launch(&place("d"), false, &mut |_| {}, None)).unwrap();
    let kernel = SegmentKernel::load(KernelForm::Amortized, &place("d"), &Device::Cpu).unwrap();
    let refused = Classes::new(&prepared, &demonstrations, &teacher, &table, &cycle.classes, &kernel, 7);
    assert!(refused.err().unwrap().to_string().contains("was not trained on D_φ"));
}

#[test]
fn windows_of_segments_are_their_middle_or_all_and_then_stillness() {
    let prepared = prepared();
    let cycle = cycle(&[]);
    let demonstrations = Demonstrations::new(&prepared, &cycle.segments).unwrap();
    let table = prepared.table(prepared.scales.clone(), &Device::Cpu, Precision::F32, 0.99).unwrap();
    let ids = demonstrations.segments_of(&demonstrations.which(false));
    let (steps, width) = (16, table.widths().actions);
    let windows = Windows::of_segments(&prepared, &demonstrations, &ids, steps, &table).unwrap();
    let places: Vec<usize> = (0..windows.len()).collect();
    let recorded = windows.recorded(&places, &table).unwrap();
    let (mut short, mut long) = (0, 0);
    for (at, id) in ids.iter().enumerate() {
        let frames = demonstrations.frames(*id);
        let kept = frames.len().min(steps);
        let first = frames.start + (frames.len() - kept) / 2;
        let found: Vec<Vec<f32>> = recorded.actions.get(at).unwrap().to_vec2().unwrap();
        let wanted: Vec<Vec<f32>> = table.gather(&[first], kept).unwrap().actions.get(0).unwrap().to_vec2().unwrap();
        assert_eq!(found[..kept], wanted);
        let states: Vec<Vec<f32>> = recorded.states.get(at).unwrap().to_vec2().unwrap();
        let seen = table.gather(&[first], kept).unwrap().states.get(0).unwrap().to_vec2::<f32>().unwrap();
        assert_eq!(states[..kept], seen);
        let mut still = vec![0.0; width];
        table.scales().actions.apply(&mut still);
        for step in kept..steps {
            let held = demonstrations.layout.grippers[0].column;
            assert_eq!(found[step][held], wanted[kept - 1][held], "the gripper stays as it was");
            assert_eq!(found[step][..held], still[..held]);
            assert_eq!(states[step], seen[kept - 1]);
        }
        (short, long) = (short + usize::from(kept < steps), long + usize::from(frames.len() > steps));
    }
    assert!(short > 0 && long > 0, "{short} {long}");
    let alone = windows.actions(&places[..2]).unwrap();
    assert_eq!((alone.states.dims(), alone.actions.dims()), (&[2, steps, 0][..], &[2, steps, width][..]));
}

#[test]
fn a_run_whose_amortizer_does_not_learn_the_kernel_compares_segments_in_another_form() {
    let resolved =
        |sets: &[&str]| RunSettings::resolve("tiny", &sets.iter().map(|set| (*set).to_owned()).collect::<Vec<_>>());
    assert_eq!(resolved(&[]).unwrap().cycle.classes.kernel, KernelForm::Amortized);
    let error = resolved(&["amortizer.supervision=distillation"]).unwrap_err().to_string();
    assert!(error.contains("`cycle.classes.kernel` is `amortized`"), "{error}");
    let paper = resolved(&["amortizer.supervision=distillation", "cycle.classes.kernel=monte_carlo"]).unwrap();
    assert_eq!(paper.cycle.classes.kernel, KernelForm::MonteCarlo);
}
