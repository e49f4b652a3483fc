//! The steps that instructions ask for.
#![expect(clippy::unwrap_used, reason = "a test that cannot be set up fails loudly")]

use language::instruction::partial;
use subtasks::steps::{ArmChoice, Kind, MAX_STEPS, OPTIONAL, Step, USUAL, steps};

fn of(instruction: &str) -> Vec<Step> {
    steps(&partial(instruction).unwrap().plan, false, 1)
}

/// The names of the steps that are needed or usual.
fn usual(instruction: &str) -> Vec<String> {
    of(instruction).into_iter().filter(|step| step.skip >= USUAL).map(|step| step.name).collect()
}

#[test]
fn an_object_is_reached_for_once_and_brought_to_its_target() {
    let mut names = [
        "reach for the black bowl",
        "grasp the black bowl",
        "lift the black bowl",
        "move the black bowl to the plate",
        "place the black bowl on the plate",
        "release the black bowl",
    ];
    assert_eq!(usual("put the black bowl on the plate"), names);
    // Which one it is is said once.
    names[0] = "reach for the black bowl next to the ramekin";
    assert_eq!(usual("pick up the black bowl next to the ramekin and place it on the plate"), names);
    names[0] = "reach for the black bowl in the center";
    assert_eq!(usual("pick up the black bowl from table center and place it on the plate"), names);
    assert_eq!(usual("pick up the milk").len(), 3);
    let retreat = of("put the black bowl on the plate").pop().unwrap();
    assert_eq!((retreat.kind, retreat.name.as_str(), retreat.object), (Kind::Retreat, "move away", None));
}

#[test]
fn what_nobody_says_to_place_may_be_put_down() {
    for instruction in ["pick up the red cube", "take the red cube off the plate", "grasp the red cube"] {
        let steps = of(instruction);
        let tail: Vec<(&str, bool)> =
            steps.iter().rev().take(4).rev().map(|step| (step.name.as_str(), step.skip <= OPTIONAL)).collect();
        let wanted = ["carry the red cube", "put down the red cube", "release the red cube", "move away"];
        assert_eq!(tail, wanted.map(|name| (name, true)), "{instruction}");
    }
    // The same before the next object, but not where the instruction says what becomes of it.
    let names = |instruction: &str| of(instruction).into_iter().map(|step| step.name).collect::<Vec<_>>();
    let two = names("pick up the red cube and press the button");
    let put_down = two.iter().position(|name| name == "put down the red cube").unwrap();
    assert!(put_down < two.iter().position(|name| name == "press the button").unwrap());
    assert!(!names("pick up the red cube and put it in the bowl").contains(&"put down the red cube".to_owned()));
}

#[test]
fn the_robot_itself_goes_home_and_surfaces_are_not_grasped() {
    let names = |instruction: &str| of(instruction).into_iter().map(|step| step.name).collect::<Vec<_>>();
    let home = names("put the cube in the box, then return home");
    assert_eq!(home[5..], ["release the cube", "return home"]);
    assert_eq!(of("put the cube in the box, then return home").pop().unwrap().object, None);
    assert_eq!(names("go home"), ["move home"]);
    for (instruction, name) in [("clean up the table", "clean up the table"), ("wipe the counter", "wipe the counter")]
    {
        assert_eq!(names(instruction), [name, "move away"]);
    }
    // What is small is taken in the hand to be cleaned, and so is a tool.
    assert!(names("clean the pan").contains(&"grasp the pan".to_owned()));
    assert!(names("wipe the table with the sponge").contains(&"grasp the sponge".to_owned()));
}

#[test]
fn an_open_number_of_objects_is_handled_one_by_one() {
    let rounds = |instruction: &str, rounds: usize| steps(&partial(instruction).unwrap().plan, false, rounds);
    let names = |steps: &[Step]| steps.iter().map(|step| step.name.clone()).collect::<Vec<_>>();
    for instruction in
        ["put all the cubes in the box", "put the cubes in the box", "pick up the cubes and place them in the box"]
    {
        let found = rounds(instruction, 3);
        let places: Vec<String> = names(&found).into_iter().filter(|name| name.starts_with("place")).collect();
        let wanted = ["first", "second", "third"].map(|it| format!("place the {it} cube in the box"));
        assert_eq!(places, wanted, "{instruction}");
        let releases: Vec<&Step> =
            found.iter().filter(|step| step.kind == Kind::Release && step.skip >= USUAL).collect();
        assert_eq!(releases.len(), 3, "{instruction}");
        assert_eq!(releases[2].object.as_deref(), Some("third cube"));
        assert_eq!(releases.iter().map(|step| step.round.unwrap().at).collect::<Vec<_>>(), [0, 1, 2]);
        let handlings: std::collections::BTreeSet<usize> = found.iter().map(|step| step.handling).collect();
        assert_eq!(handlings.len(), 3, "{instruction}");
    }
    // One of them is not counted, nor is one thing with a plural, nor what is not handled one by one.
    assert_eq!(names(&rounds("put the cubes in the box", 1))[1], "grasp the cubes");
    for instruction in
        ["put the scissors in the box", "put the cube in the box", "wave to the visitors", "open the gripper"]
    {
        let found = rounds(instruction, 3);
        assert!(found.iter().all(|step| step.round.is_none()), "{instruction}: {:?}", names(&found));
    }
    // A number that is told stays what it is, and what follows is not one of them.
    assert_eq!(rounds("put both moka pots on the stove", 5), rounds("put both moka pots on the stove", 1));
    let then = rounds("put all the cubes in the box and close the drawer", 2);
    let last: Vec<&Step> = then.iter().filter(|step| step.round.is_none()).collect();
    assert_eq!(last[0].name, "reach for the drawer");
    assert!(names(&rounds("pick up all the toys", 2)).contains(&"put down the first toy".to_owned()));
    assert_eq!(rounds("put all the cubes in the box", 500).len(), rounds("put all the cubes in the box", 12).len());
}

#[test]
fn number_words_above_ten_are_counts() {
    let steps = of("press the button twelve times");
    assert_eq!(steps.iter().filter(|step| step.name == "press the button").count(), 12);
    let plan = partial("press the button twenty-five times").unwrap().plan.to_string();
    assert!(plan.ends_with(", 25)"), "{plan}");
    let balls = of("put the ball in the bowl twenty times");
    assert!(balls.iter().all(|step| !step.name.contains("twenty")), "{balls:?}");
    assert!(balls.len() > 80);
}

#[test]
fn drawers_knobs_and_pushed_things_are_held_but_not_lifted() {
    assert_eq!(
        usual("open the middle drawer of the cabinet"),
        [
            "reach for the middle drawer",
            "grasp the handle of the middle drawer",
            "open the middle drawer",
            "release the handle of the middle drawer"
        ]
    );
    assert_eq!(
        usual("turn on the stove"),
        ["reach for the stove", "grasp the knob of the stove", "turn on the stove", "release the knob of the stove"]
    );
    let push = of("push the plate to the front of the stove");
    assert!(push.iter().any(|step| step.name == "push the plate to the front of the stove"), "{push:?}");
    assert!(push.iter().all(|step| step.kind != Kind::Lift));
}

#[test]
fn objects_of_a_repetition_are_numbered_and_a_button_stays_the_same() {
    let pots = usual("put both moka pots on the stove");
    assert_eq!(pots.len(), 12);
    assert_eq!(pots[0], "reach for the first moka pot");
    assert_eq!(pots[6], "reach for the second moka pot");
    let button = of("press the red button twice");
    assert_eq!(button.iter().filter(|step| step.name == "press the red button").count(), 2);
    assert!(button.iter().all(|step| step.object.as_deref().is_none_or(|object| object == "red button")));
}

#[test]
fn other_verbs_keep_their_words() {
    let has = |instruction: &str, name: &str| {
        let steps = of(instruction);
        assert!(steps.iter().any(|step| step.name == name && step.skip > USUAL), "{instruction}: {steps:#?}");
    };
    has("wipe the table with the sponge", "wipe the table with the sponge");
    has("pour the water from the cup into the bowl", "pour the water into the bowl");
    has("insert the peg into the hole", "insert the peg into the hole");
    has("fold the towel", "fold the towel");
    has("place the pepsi can upright", "place the pepsi can upright");
    // What is poured is moved in what it is in.
    assert_eq!(usual("pour the water from the cup into the bowl")[0], "reach for the cup");
    assert_eq!(usual("wipe the table with the sponge")[0], "reach for the sponge");
    assert_eq!(of("wave to the visitor")[0].name, "wave to the visitor");
}

#[test]
fn arms_are_named_for_what_they_do() {
    let arms = |instruction: &str| of(instruction).into_iter().map(|step| (step.phase, step.arm)).collect::<Vec<_>>();
    let both = arms("lift the tray with both arms and set it down on the mat");
    assert!(both.iter().all(|(_, arm)| *arm == ArmChoice::Both), "{both:?}");
    let right = arms("pick up the red cube with the right arm, place it on the plate and open the drawer");
    let named = |side: &str| ArmChoice::Named(side.to_owned());
    assert_eq!(right[0], ("reach".to_owned(), named("right")));
    assert_eq!(right.last().unwrap().1, ArmChoice::Any);
    let over = arms("hand the blue block over from the left arm to the right arm and put it in the tray");
    let phases: Vec<(&str, &ArmChoice)> = over.iter().map(|(phase, arm)| (phase.as_str(), arm)).collect();
    let [left, right] = ["left", "right"].map(named);
    assert_eq!(phases[..4], [("reach", &left), ("grasp", &left), ("lift", &left), ("transport", &left)]);
    assert_eq!(phases[4..7], [("reach", &right), ("grasp", &right), ("release", &left)]);
    assert_eq!(phases.last().unwrap().1, &right);
}

#[test]
fn a_robot_on_a_base_may_drive_to_what_it_handles() {
    let plan = partial("drive to the table and pick up the red cube").unwrap().plan;
    let names: Vec<String> = steps(&plan, true, 1).into_iter().map(|step| step.name).collect();
    assert_eq!(
        names,
        [
            "drive to the table",
            "drive to the red cube",
            "reach for the red cube",
            "grasp the red cube",
            "lift the red cube",
            "carry the red cube",
            "put down the red cube",
            "release the red cube",
            "move away"
        ]
    );
    assert_eq!(steps(&plan, false, 1)[0].name, "move to the table");
}

/// Every instruction of LIBERO and of the fixtures from other datasets has steps with readable names.
#[test]
fn every_known_instruction_has_readable_steps() {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../language/fixtures/");
    let read = |file: &str| std::fs::read_to_string(format!("{folder}{file}")).unwrap();
    let mut instructions: Vec<String> = Vec::new();
    for file in ["wild_instructions.txt", "wild_instructions_held_back.txt"] {
        let text = read(file);
        let lines = text.lines().filter(|line| !line.starts_with('#'));
        instructions.extend(lines.filter_map(|line| Some(line.split('|').nth(1)?.trim().to_owned())));
    }
    for file in ["libero_instructions.json", "libero_90_instructions.json"] {
        // Every quoted text but the keys, which have no articles.
        instructions.extend(read(file).split('"').filter(|text| text.contains("the ")).map(str::to_owned));
    }
    assert!(instructions.len() > 600, "{}", instructions.len());
    let plans: Vec<_> = instructions.iter().filter_map(|one| Some((one, partial(one).ok()?.plan))).collect();
    assert!(plans.len() * 50 > instructions.len() * 49, "{} of {}", plans.len(), instructions.len());
    for (instruction, plan) in plans {
        let steps = steps(&plan, false, 1);
        assert!(!steps.is_empty(), "{instruction} has no steps");
        assert!(steps.len() <= MAX_STEPS);
        assert!(steps.iter().any(|step| step.skip > OPTIONAL), "{instruction} needs nothing: {steps:?}");
        for step in steps {
            let name = &step.name;
            assert!(name.trim() == name && !name.contains("  ") && name.len() > 2, "{instruction}: `{name}`");
            assert!(!name.contains("the the ") && !name.ends_with(" the"), "{instruction}: `{name}`");
            assert!(step.skip >= 0.0 && !step.phase.is_empty() && !step.phase.contains(' '), "{step:?}");
        }
    }
}

#[test]
fn a_hand_is_neither_a_place_of_an_object_nor_reached_for() {
    let all = |instruction: &str| of(instruction).into_iter().map(|step| step.name).collect::<Vec<_>>();
    for (instruction, object, taker) in [
        (
            "hand the blue block over from the left arm to the right arm and put it in the tray",
            "blue block",
            "hand over the blue block to the right arm",
        ),
        (
            "pass the bottle from the left hand to the right hand and put it on the tray",
            "bottle",
            "pass the bottle to the right hand",
        ),
        (
            "pick up the cube with the right arm and transfer it to the left arm",
            "cube",
            "hand over the cube to the left arm",
        ),
    ] {
        let names = all(instruction);
        assert!(names.contains(&format!("reach for the {object}")) && names.contains(&taker.to_owned()), "{names:?}");
        assert!(!names.iter().any(|name| name.contains(" on the left") || name.contains("next to")), "{names:?}");
    }
    assert_eq!(all("close the gripper"), ["close the gripper"]);
    assert_eq!(of("close the gripper")[0].kind, Kind::Grasp);
    assert!(!all("insert the gripper into the hole").iter().any(|name| name.starts_with("reach for")));
}

#[test]
fn what_is_poured_goes_into_its_container_and_what_is_swept_to_a_side() {
    for (instruction, wanted) in [
        ("pour the water from the cup into the bowl", "pour the water into the bowl"),
        ("insert the peg into the hole", "insert the peg into the hole"),
        ("sweep the blue block to the left", "sweep the blue block to the left"),
        ("fold the cloth in half", "fold the cloth in half"),
        ("hang the picture frame on the wall", "hang the picture frame on the wall"),
        ("put the cup in the sink", "place the cup in the sink"),
    ] {
        let names: Vec<String> = of(instruction).into_iter().map(|step| step.name).collect();
        assert!(names.contains(&wanted.to_owned()), "{instruction}: {names:?}");
    }
}
