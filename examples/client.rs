//! A robot in ten lines: `cargo run -p server --example client`, next to `refactor-vla serve demo-run`.
#![expect(clippy::print_stdout, reason = "the result of the program")]

use server::client::{Client, Input};

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut policy = Client::connect("127.0.0.1:8000", None).await?;
    let (image, state) = (Input::Image(128, 128, &[0; 128 * 128 * 3]), Input::Numbers(&[0.0; 8]));
    let prompt = Input::Text("put the bowl on the plate");
    let observation = [("image", image), ("wrist_image", image), ("state", state), ("prompt", prompt)];
    println!("{:?}", policy.infer(&observation).await?.actions);
    Ok(())
}
