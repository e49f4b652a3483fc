//! A robot in ten lines: `cargo run -p server --example client`, next to `refactor-vla serve demo-run`.

use server::client::{Client, Input};

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut policy = Client::connect("127.0.0.1:8000", None).await?;
    let (image, state) = (vec![0; 128 * 128 * 3], vec![0.0; policy.number("state_dim").unwrap_or(0)]);
    let observation = [
        ("observation/image", Input::Image(128, 128, &image)),
        ("observation/wrist_image", Input::Image(128, 128, &image)),
        ("observation/state", Input::Numbers(&state)),
        ("prompt", Input::Text("put the bowl on the plate")),
    ];
    let answer = policy.infer(&observation).await?;
    std::io::Write::write_all(&mut std::io::stdout(), format!("{:?}\n", answer.actions).as_bytes())?;
    Ok(())
}
