use crate::requests::Service;
use crate::requests::service::{MALFORMED, body_with};

#[test]
fn an_identity_is_valid_unless_its_new_key_is_in_no_document_that_anybody_has() {
    let service = Service::start();
    service.site.cli_ok(&["generateminerid", "--name", "fresh"]);
    for alias in ["fresh", "first", "rot", "contact"] {
        assert!(service.is_valid(alias), "{alias}");
    }
    let documents = |alias: &str| {
        let body = body_with(&[("alias", &format!("\"{alias}\""))]);
        let site = &service.site;
        [
            service.server.get(&format!("/opreturn/{alias}/1000")).status == 200,
            service.server.post("/coinbase2", body).status == 200,
            site.cli(&["miner", "script", "--name", alias, "--height", "1000"]).code == 0,
        ]
    };
    for number in 0..2 {
        assert_eq!(service.server.post("/opreturn/first/rotate", "").body, "OK");
        assert!(!service.is_valid("first"));
        service.key_of("first");
        service.server.text(&format!("/minerid/first/sign/{}", "ab".repeat(32)));
        service.check_get("/opreturn/first/0", 422, "Must enter a valid height");
        service.check_post(body_with(&[("coinbase2", "\"00\"")]), 422, MALFORMED);
        service.site.cli_ok(&["miner", "script", "--name", "first", "--height", "1"]);
        assert!(!service.is_valid("first"), "what the command line prints is in no block");
        assert!(service.is_valid("rot"));
        match number {
            0 => drop(service.server.text("/opreturn/first/1000")),
            _ => drop(service.post_ok(body_with(&[]))),
        }
        assert!(service.is_valid("first"));
    }
    service.site.cli_ok(&["rotateminerid", "--name", "fresh"]);
    assert!(!service.is_valid("fresh"));
    assert_eq!(documents("fresh"), [false; 3], "it has no VCTx");
    assert!(!service.is_valid("fresh"));
    service.check_get("/opreturn/unknown/isvalid", 422, "Alias \"unknown\" doesn't exist");
}

#[test]
fn whether_an_identity_is_valid_survives_a_restart() {
    let mut service = Service::start();
    for alias in ["first", "rot"] {
        assert_eq!(service.server.text(&format!("/opreturn/{alias}/rotate")), "OK");
    }
    service.server.text("/opreturn/rot/1000");
    for _ in 0..2 {
        assert!(!service.is_valid("first"));
        assert!(service.is_valid("rot"));
        assert!(service.is_valid("contact"));
        service = service.restart();
    }
}
