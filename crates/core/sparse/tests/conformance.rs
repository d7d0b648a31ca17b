//! A state whose rows stand at several nodes is a store like all others.

mod support;

mod in_memory {
    use memory::Memory;
    use sparse::SharedStores;
    use state::Stores;
    use std::sync::Arc;

    fn stores() -> SharedStores {
        let placement = super::support::scattered(2, 1);
        super::support::unshared(&placement, |_| Arc::new(Memory) as Arc<dyn Stores>)
    }

    state::conformance!(stores());
}

mod on_disk {
    use disk::{Disk, DiskOptions, RowsIn};
    use sparse::SharedStores;
    use state::Stores;
    use std::sync::Arc;

    fn stores(rows_in: RowsIn) -> SharedStores {
        let placement = super::support::scattered(3, 2);
        // Removed with the process's other temporary folders: stores outlive this function.
        let folder = tempfile::tempdir().expect("a folder").keep();
        super::support::unshared(&placement, move |number| {
            let options = DiskOptions { rows_in, memory_bytes: 20_000 };
            Arc::new(Disk::open(&folder.join(number.to_string()), options).expect("a folder"))
                as Arc<dyn Stores>
        })
    }

    // What a validator's store adds to those of its nodes does not depend on their kind, but for what outlives a process.
    state::conformance_tests! {
        stores(RowsIn::Disk);
        roots_and_proofs_are_those_of_a_full_computation
        what_cannot_be_read_is_an_error_wherever_it_is_met
        checkpoints_are_kept_as_they_were
        a_state_comes_back_where_it_was_left
    }
}
