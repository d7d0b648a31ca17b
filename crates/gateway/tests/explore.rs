#![allow(missing_docs)]
mod fake;
#[tokio::test(flavor = "multi_thread")]
#[ignore]
async fn explore() {
    let ports = fake::serve(std::sync::Arc::new(fake::Fake::default())).await;
    std::fs::write("/tmp/gateway_ports", format!("{} {}", ports.0, ports.1)).unwrap();
    tokio::time::sleep(std::time::Duration::from_secs(36000)).await;
}
