//! SQL and PL/pgSQL: parsing, planning and simulation into effects
