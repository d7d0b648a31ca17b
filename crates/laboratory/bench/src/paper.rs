use serde::Deserialize;

/// The five papers; an experiment of our own is of none.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Paper {
    HarmonyBC,
    FabricPlusPlus,
    SmartFabric,
    Xox,
    ChainifyDB,
    Entente,
}

impl Paper {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Paper::HarmonyBC => "HarmonyBC",
            Paper::FabricPlusPlus => "Fabric++",
            Paper::SmartFabric => "SmartFabric",
            Paper::Xox => "FastFabric, XOX, TNG",
            Paper::ChainifyDB => "AnKerDB, Fabric++, ChainifyDB",
            Paper::Entente => "Entente",
        }
    }

    /// What an experiment is called: paper and number; our own experiments have a name instead.
    pub(crate) fn figure(self, number: &str) -> String {
        match self {
            Paper::Entente => number.to_string(),
            paper => format!("{} {number}", paper.name()),
        }
    }
}
