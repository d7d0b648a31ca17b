//! Two of four organisations trade in a schema of their own; a third sees that something happened, and not what; a regulator is
//! added and sees everything (docs/privacy.md).

use super::prepare::{connect, explain};
use super::screen::Screen;
use crate::CommandError;
use serde::Serialize;
use std::net::SocketAddr;
use std::time::{Duration, Instant};
use tokio_postgres::{Client, SimpleQueryMessage};

/// The schema of the first two organisations.
const CREATE: &str = "CREATE SCHEMA deal MEMBERS (org1, org2)";
const DEFINE: &str = "
    CREATE TABLE deal.trades (id int PRIMARY KEY, goods text NOT NULL, tonnes int NOT NULL CHECK (tonnes > 0), price numeric(12,2));
    CREATE PROCEDURE deal.accept(trade int, offer numeric) LANGUAGE plpgsql AS $$
    BEGIN
        UPDATE deal.trades SET price = offer WHERE id = trade AND price IS NULL;
        IF NOT FOUND THEN RAISE EXCEPTION 'trade % has a price already', trade; END IF;
    END $$";
const OFFERS: &str = "INSERT INTO deal.trades VALUES (1, 'copper', 120, NULL), (2, 'tin', 8, NULL)";
const ACCEPT: &str = "CALL deal.accept(1, 81250.00)";
const REGULATOR: &str = "ALTER SCHEMA deal ADD MEMBER org4";
const TRADES: &str = "SELECT id, goods, tonnes, price FROM deal.trades ORDER BY id";
/// What the ledger says to everybody.
const SEEN: &str = "SELECT height, organisation, call, outcome FROM entente.transactions WHERE call LIKE 'PARTS%' ORDER BY height";
/// How long a node may take to see what others have done.
const WITHIN: Duration = Duration::from_secs(60);
const LOOK_AGAIN: Duration = Duration::from_millis(100);

/// What each organisation has seen; its keys are an interface.
#[derive(Serialize)]
pub(super) struct PrivateResult {
    /// Organisations of the ledger.
    pub(super) nodes: u64,
    /// The schema.
    pub(super) schema: &'static str,
    /// Who its members are at the end.
    pub(super) members: Vec<&'static str>,
    /// Rows of its table that each organisation sees before the regulator comes; null: the table does not exist there.
    pub(super) rows_before: Vec<Option<usize>>,
    /// The same afterwards.
    pub(super) rows_after: Vec<Option<usize>>,
    /// Transactions in the schema that everybody sees, as commitments.
    pub(super) commitments: usize,
    /// Everything was as it must be.
    pub(super) as_promised: bool,
}

/// The sessions of the demo.
struct Trading<'a> {
    screen: &'a Screen,
    sessions: Vec<Client>,
}

/// Trades, and shows what everybody sees of that.
pub(super) async fn trade(gateways: &[SocketAddr], screen: &Screen) -> Result<PrivateResult, CommandError> {
    let mut sessions = Vec::new();
    for gateway in gateways {
        sessions.push(connect(*gateway).await?);
    }
    let trading = Trading { screen, sessions };
    screen.say("\norg1 and org2 trade in a schema that nobody else can read:");
    trading.run(0, CREATE).await?;
    trading.run(0, DEFINE).await?;
    trading.run(0, OFFERS).await?;
    trading.wait_for(1, Some(2)).await?;
    trading.run(1, ACCEPT).await?;
    trading.show(1, TRADES).await?;
    let height = trading.height(1).await?;
    for session in 0..gateways.len() {
        trading.wait_for_height(session, height).await?;
    }
    let before = trading.counted().await?;
    screen.say("\norg3 sees that something happened, and not what:");
    trading.show(2, TRADES).await?;
    trading.show(2, SEEN).await?;
    screen.say(
        "\nA regulator is added; its node asks the members for everything since the schema was created:",
    );
    trading.run(0, REGULATOR).await?;
    trading.wait_for(3, Some(2)).await?;
    trading.show(3, TRADES).await?;
    let after = trading.counted().await?;
    let commitments = trading.rows(2, SEEN).await?.map_or(0, |rows| rows.len());
    let hidden = |position: usize| if position < 2 { Some(2) } else { None };
    let expected: Vec<Option<usize>> = (0..gateways.len()).map(hidden).collect();
    let with_regulator: Vec<Option<usize>> =
        (0..gateways.len()).map(|position| if position == 3 { Some(2) } else { hidden(position) }).collect();
    Ok(PrivateResult {
        nodes: gateways.len() as u64,
        schema: "deal",
        members: vec!["org1", "org2", "org4"],
        as_promised: before == expected && after == with_regulator && commitments == 3,
        rows_before: before,
        rows_after: after,
        commitments,
    })
}

impl Trading<'_> {
    /// Runs a statement of one organisation, and shows it.
    async fn run(&self, organisation: usize, sql: &str) -> Result<(), CommandError> {
        self.say_statement(organisation, sql);
        self.sessions[organisation].batch_execute(sql).await.map_err(|error| explain(sql, &error))
    }

    fn say_statement(&self, organisation: usize, sql: &str) {
        let lines: Vec<&str> =
            sql.lines().map(|line| line.trim_end()).filter(|line| !line.is_empty()).collect();
        let text = lines.join("\n      ");
        self.screen.say(format!("  org{}# {}", organisation + 1, text.trim_start()));
    }

    /// Shows what one organisation is answered.
    async fn show(&self, organisation: usize, sql: &str) -> Result<(), CommandError> {
        self.say_statement(organisation, sql);
        match self.rows(organisation, sql).await? {
            None => self.screen.say("      ERROR:  relation \"deal.trades\" does not exist"),
            Some(rows) => rows.iter().for_each(|row| self.screen.say(format!("      {}", row.join(" | ")))),
        }
        Ok(())
    }

    /// The rows of a query; `None` where its table does not exist.
    async fn rows(&self, organisation: usize, sql: &str) -> Result<Option<Vec<Vec<String>>>, CommandError> {
        let messages = match self.sessions[organisation].simple_query(sql).await {
            Ok(messages) => messages,
            Err(error) if error.code().is_some_and(|code| code.code() == "42P01") => return Ok(None),
            Err(error) => return Err(explain(sql, &error)),
        };
        let row = |message: &SimpleQueryMessage| match message {
            SimpleQueryMessage::Row(row) => {
                Some((0..row.len()).map(|at| row.get(at).unwrap_or("").to_string()).collect())
            }
            _ => None,
        };
        Ok(Some(messages.iter().filter_map(row).collect()))
    }

    async fn height(&self, organisation: usize) -> Result<u64, CommandError> {
        let rows = self.rows(organisation, "SELECT max(height) FROM entente.blocks").await?;
        let height = rows.and_then(|rows| rows.first()?.first()?.parse().ok());
        Ok(height.ok_or("a node has no blocks")?)
    }

    async fn wait_for_height(&self, organisation: usize, height: u64) -> Result<(), CommandError> {
        let start = Instant::now();
        while self.height(organisation).await? < height {
            if start.elapsed() > WITHIN {
                return Err(format!("org{} does not come up with the others", organisation + 1).into());
            }
            tokio::time::sleep(LOOK_AGAIN).await;
        }
        Ok(())
    }

    /// Waits until an organisation sees so many trades.
    async fn wait_for(&self, organisation: usize, rows: Option<usize>) -> Result<(), CommandError> {
        let start = Instant::now();
        loop {
            let found = self.rows(organisation, TRADES).await?.map(|rows| rows.len());
            if found == rows {
                return Ok(());
            }
            if start.elapsed() > WITHIN {
                let text = format!("org{} was to see {rows:?} trades, and sees {found:?}", organisation + 1);
                return Err(text.into());
            }
            tokio::time::sleep(LOOK_AGAIN).await;
        }
    }

    /// How many trades each organisation sees.
    async fn counted(&self) -> Result<Vec<Option<usize>>, CommandError> {
        let mut counted = Vec::new();
        for organisation in 0..self.sessions.len() {
            counted.push(self.rows(organisation, TRADES).await?.map(|rows| rows.len()));
        }
        Ok(counted)
    }
}

/// What to try while the network stays up.
pub(super) fn invitation() -> String {
    [
        "\nTry the same at every organisation:",
        "  SELECT * FROM deal.trades;                          -- org1, org2 and org4 see it, org3 does not",
        "  CALL deal.accept(2, 26900);                         -- at a member; org3 sees one more commitment",
        "  SELECT height, call FROM entente.transactions ORDER BY height DESC LIMIT 5;",
        "  ALTER SCHEMA deal DROP MEMBER org4;                 -- at a member: org4 gets nothing more",
    ]
    .join("\n")
}
