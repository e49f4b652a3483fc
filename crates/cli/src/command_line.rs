//! The command that makes a run again, as a person would type it into a shell.

use std::path::Path;

use experiments::presets::names;
use models::DeviceChoice;

use crate::args::KeyArgs;
use crate::run::DEMO_DATASET;
use crate::train::{FeatureArgs, HowArgs, SourceArgs};

/// The command that makes a run again: `demo` if that is all it was, `run` with what was given otherwise.
pub(crate) fn again(source: &SourceArgs, keys: &KeyArgs, preset: &str, out: &Path, how: &HowArgs) -> String {
    let data = data_options(&source.features, keys);
    let mut words = vec!["refactor-vla".to_owned()];
    match (preset, &source.dataset[..]) {
        ("demo", [dataset]) if dataset == DEMO_DATASET && data.is_empty() => words.push("demo".to_owned()),
        (_, datasets) => {
            words.push("run".to_owned());
            words.extend_from_slice(datasets);
            words.extend(names(preset).into_iter().flat_map(|name| ["--preset".to_owned(), name.to_owned()]));
        }
    }
    if source.features.tuning {
        words.push("--tuning".to_owned());
    }
    let mut option = |name: &str, value: String| words.extend([name.to_owned(), value]);
    for (name, value) in data {
        option(name, value);
    }
    for set in &how.sets {
        option("--set", set.clone());
    }
    option("--seed", how.seed.to_string());
    if how.compute.device != DeviceChoice::Auto {
        option("--device", how.compute.device.to_string());
    }
    option("--out", out.display().to_string());
    words.iter().map(|word| quoted(word)).collect::<Vec<_>>().join(" ")
}

/// This command as it was typed.
pub(crate) fn typed() -> String {
    let words = std::env::args_os().skip(1).map(|word| word.to_string_lossy().into_owned());
    std::iter::once("refactor-vla".to_owned()).chain(words.map(|word| quoted(&word))).collect::<Vec<_>>().join(" ")
}

/// Options that say what is learned from, as far as they were given.
fn data_options(features: &FeatureArgs, keys: &KeyArgs) -> Vec<(&'static str, String)> {
    let FeatureArgs { encoder, cache, hold_out, tuning: _ } = features;
    let KeyArgs { state_key, action_key, camera_key, reward_key, label_key, control, gripper } = keys;
    let single = [
        ("--encoder", encoder.clone()),
        ("--cache", cache.as_ref().map(|folder| folder.display().to_string())),
        ("--hold-out", hold_out.map(|episodes| episodes.to_string())),
        ("--state-key", state_key.clone()),
        ("--action-key", action_key.clone()),
        ("--reward-key", reward_key.clone()),
    ];
    let control: &Vec<String> = &control.iter().map(ToString::to_string).collect();
    let several =
        [("--camera-key", camera_key), ("--label-key", label_key), ("--control", control), ("--gripper", gripper)];
    let several = several.into_iter().flat_map(|(name, keys)| keys.iter().map(move |key| (name, key.clone())));
    single.into_iter().filter_map(|(name, value)| Some((name, value?))).chain(several).collect()
}

/// A word as a POSIX shell reads it back.
pub(crate) fn quoted(word: &str) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "_-./:=,@%+".contains(c);
    match !word.is_empty() && word.chars().all(is_plain) {
        true => word.to_owned(),
        false => format!("'{}'", word.replace('\'', r"'\''")),
    }
}

#[cfg(test)]
mod tests {
    use clap::Parser as _;

    use super::*;
    use crate::args::{Args, Command};

    /// The words that a shell makes of a line.
    fn words(line: &str) -> Vec<String> {
        let script = format!("for word in {line}; do printf '%s\\0' \"$word\"; done");
        let out = std::process::Command::new("sh").args(["-c", &script]).output().unwrap().stdout;
        let text = String::from_utf8(out).unwrap();
        text.split_terminator('\0').map(str::to_owned).collect()
    }

    /// The command of a run that was typed as these words.
    fn command_of(words: &[String]) -> String {
        match Args::try_parse_from(words).unwrap().command {
            Command::Run(options) => {
                let source = SourceArgs { dataset: options.datasets(), features: options.features.clone() };
                again(&source, &options.keys, &options.presets.joined(), &options.out, &options.how)
            }
            Command::Demo(options) => {
                let source = SourceArgs { dataset: vec![DEMO_DATASET.to_owned()], features: FeatureArgs::default() };
                again(&source, &KeyArgs::default(), "demo", &options.out, &options.how)
            }
            _ => panic!("neither `run` nor `demo`"),
        }
    }

    #[test]
    fn a_shell_reads_back_what_was_quoted() {
        assert_eq!(quoted("model.contrast=none"), "model.contrast=none");
        assert_eq!(quoted("dinov2-small cls"), "'dinov2-small cls'");
        for word in
            ["", "a b", "it's", "''", "$HOME", "~/x", "a\nb", "a\\", "*", "\"", "ä", "a;b", "`id`", "#", "[1,2]"]
        {
            assert_eq!(words(&quoted(word)), [word]);
        }
    }

    #[test]
    fn a_command_says_all_that_was_given_and_gives_itself_again() {
        for (typed, wanted) in [
            ("refactor-vla demo", "refactor-vla demo --seed 0 --out demo-run"),
            (
                "refactor-vla run --dataset embedded:libero_goal_mini --preset demo --out a",
                "refactor-vla demo --seed 0 --out a",
            ),
            (
                "refactor-vla run --dataset embedded:libero_goal_mini --preset demo --hold-out 1 --out a --resume --json",
                "refactor-vla run embedded:libero_goal_mini --preset demo --hold-out 1 --seed 0 --out a",
            ),
            (
                "refactor-vla run sets/goal 'sets/the 10' --preset m188 --preset fast-wake --seed 2 --out a",
                "refactor-vla run sets/goal 'sets/the 10' --preset m188 --preset fast-wake --seed 2 --out a",
            ),
            (
                "refactor-vla run --dataset sets/goal sets/10 --out a",
                "refactor-vla run sets/goal sets/10 --preset small --seed 0 --out a",
            ),
            (
                "refactor-vla run --out 'my runs/a' --dataset \"it's\" --camera-key top --camera-key 'left eye' --label-key phase \
                 --control 'left arm=absolute' --gripper none \
                 --state-key s --action-key a --reward-key r --features 'the cache' --encoder 'dinov2-small cls' --hold-out 3 \
                 --set cycle.iterations=2 --set 'wake.emitter.train.steps = 5' --seed 7 --device cpu",
                "refactor-vla run 'it'\\''s' --preset small --encoder 'dinov2-small cls' --cache 'the cache' \
                 --hold-out 3 --state-key s --action-key a --reward-key r --camera-key top --camera-key 'left eye' \
                 --label-key phase --control 'left arm=absolute' --gripper none --set cycle.iterations=2 \
                 --set 'wake.emitter.train.steps = 5' --seed 7 --device cpu \
                 --out 'my runs/a'",
            ),
        ] {
            let command = command_of(&words(typed));
            assert_eq!(command, wanted);
            assert_eq!(command_of(&words(&command)), wanted);
        }
    }
}
