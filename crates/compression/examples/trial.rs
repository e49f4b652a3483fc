//! trial
fn main() {
    let a: Vec<String> = std::env::args().collect();
    let programs: Vec<String> = serde_json::from_str(&std::fs::read_to_string(&a[1]).unwrap()).unwrap();
    compression::trial(&programs, a[2].parse().unwrap(), a[3].parse().unwrap(), a[4].parse().unwrap(), a[5].parse().unwrap());
}
