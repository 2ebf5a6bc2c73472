//! A front end that passes requests on to both servers.

use bsv_tests::{Client, FrontEnd, free_port};

use super::{PRICE, Pair};

#[test]
fn a_front_end_asks_the_server_that_is_left() {
    let pair = Pair::start("front_end", 0);
    let listeners = pair.tills.each_ref().map(|till| till.payments().address());
    let port = free_port();
    let _front_end = FrontEnd::caddy_before(port, listeners);
    let payer = Client::at(&format!("https://127.0.0.1:{port}")).unwrap().unchecked();
    for (dying, living) in [(0, 1), (1, 0)] {
        let id = pair.tills[living].invoice(PRICE);
        pair.tills[dying].kill();
        for _ in 0..10 {
            let terms = payer.get(&format!("/dpp/api/v1/payment/{id}"));
            assert_eq!(terms.status, 200, "{}", terms.body);
        }
        pair.tills[dying].start();
    }
}
