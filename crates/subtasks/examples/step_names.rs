//! Prints the steps of instructions, one instruction a line on stdin.
#![expect(clippy::print_stdout, reason = "an example")]
fn main() {
    for line in std::io::stdin().lines().map_while(Result::ok) {
        let names: Vec<String> = subtasks::expected(&line, false, 2).into_iter().map(|step| step.name).collect();
        println!("{line}\n    {}", names.join(" · "));
    }
}
