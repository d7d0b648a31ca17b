use super::*;
use workloads::Workload;

fn arguments(protocols: &[&str]) -> TpccArguments {
    TpccArguments {
        warehouses: vec![2],
        protocols: protocols.iter().map(|id| id.to_string()).collect(),
        block_size: 20,
        threads: Some(2),
        rounds: Some(1),
        seconds: Some(0.1),
        customers: Some(30),
        items: Some(200),
        seed: 1,
        quick: true,
        json: None,
    }
}

#[test]
fn every_protocol_keeps_the_consistency_conditions() {
    let records = tpcc(&arguments(&concurrency::IDS), &mut |_| {}).expect("it runs");
    assert_eq!(records.len(), concurrency::IDS.len());
    for record in &records {
        assert!(record.consistency_holds && record.committed_tps > 0.0, "{record:?}");
        assert!(record.new_orders_per_minute > record.committed_tps * 60.0 * 0.3, "{record:?}");
        // Those two give up in their papers; nobody else does.
        let gives_up = ["aria", "ssi"].contains(&record.protocol.as_str());
        assert!(gives_up || record.conflict_abort_rate == 0.0, "{record:?}");
    }
    let table = tpcc_table(&records);
    eprintln!("{table}");
    assert!(table.contains("| harmony |"));
}

#[test]
fn postgresql_runs_the_same() {
    let records = tpcc(&arguments(&["postgres"]), &mut |_| {}).expect("it runs");
    for record in &records {
        assert!(record.consistency_holds && record.committed_tps > 0.0, "{record:?}");
    }
}

#[test]
fn conditions_find_what_is_broken() {
    let workload = Tpcc::reduced(1, 30, 200).expect("valid");
    let mut chain = load(&workload, &arguments(&[])).expect("it loads");
    assert_eq!(chain.breaks(&workload.conditions()), Vec::<String>::new());
    for (statement, number) in [
        ("UPDATE warehouse SET w_ytd = w_ytd + 1", "3.3.2.1:"),
        ("UPDATE district SET d_next_o_id = 5 WHERE d_id = 3", "3.3.2.2:"),
        ("DELETE FROM new_order WHERE no_d_id = 2 AND no_o_id = 25", "3.3.2.3:"),
        ("DELETE FROM order_line WHERE ol_d_id = 2 AND ol_o_id = 25 AND ol_number = 1", "3.3.2.4:"),
        ("UPDATE orders SET o_carrier_id = NULL WHERE o_d_id = 4 AND o_id = 1", "3.3.2.5:"),
        ("UPDATE orders SET o_ol_cnt = o_ol_cnt + 1 WHERE o_d_id = 4 AND o_id = 2", "3.3.2.6:"),
        ("UPDATE order_line SET ol_delivery_d = NULL WHERE ol_d_id = 4 AND ol_o_id = 3", "3.3.2.7:"),
        (
            "INSERT INTO history (h_w_id, h_d_id, h_c_w_id, h_c_d_id, h_c_id, h_amount) VALUES (1, 1, 1, 1, 1, 2)",
            "3.3.2.9:",
        ),
        ("UPDATE customer SET c_balance = c_balance + 1 WHERE c_d_id = 7 AND c_id = 1", "3.3.2.10:"),
        ("UPDATE customer SET c_ytd_payment = c_ytd_payment + 1 WHERE c_d_id = 8 AND c_id = 1", "3.3.2.12:"),
    ] {
        let mut chain = load(&workload, &arguments(&[])).expect("it loads");
        chain.execute_script(statement).expect("it runs");
        let broken = chain.breaks(&workload.conditions());
        assert!(broken.iter().any(|name| name.contains(number)), "{statement}: {broken:?}");
    }
    chain.execute_script("UPDATE customer SET c_credit = 'GC'").expect("it runs");
    assert_eq!(chain.breaks(&workload.conditions()), Vec::<String>::new());
}
