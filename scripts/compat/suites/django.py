"""Django's own tests of models, queries, fields, schema changes, migrations and transactions, with psycopg 3."""

import os

from python import environment, sources

NAME = "Django 5.2.19"
VERSION = "5.2.19"
# Those that ask a database; left are those of templates, forms, the admin pages, HTTP, files and other parts of Django.
PARTS = {
    "basic": """basic bulk_create create custom_columns custom_managers custom_pk defer delete distinct_on_fields empty get_or_create
        get_object_or_404 get_earliest_or_latest force_insert_update known_related_objects save_delete_hooks select_for_update
        update update_only_fields""",
    "queries": """queries lookup custom_lookups or_lookups xor_lookups null_queries reverse_lookup string_lookup ordering raw_query
        filtered_relation""",
    "expressions": "aggregation annotations expressions expressions_case expressions_window composite_pk",
    "functions": "db_functions datatypes dates datetimes timezones db_typecasts db_utils",
    "fields": "model_fields field_defaults field_subclassing from_db_value generic_relations max_lengths model_enums constraints",
    "relations": """foreign_object m2m_and_m2o m2m_intermediary m2m_multiple m2m_recursive m2m_signals m2m_through m2o_recursive
        many_to_many many_to_one many_to_one_null one_to_one nested_foreign_keys null_fk null_fk_ordering prefetch_related
        select_related select_related_onetoone model_inheritance proxy_models mutually_referential""",
    "schema": "schema indexes model_indexes introspection inspectdb unmanaged_models order_with_respect_to",
    "migrations": "migrations migrations2 custom_migration_operations migrate_signals migration_test_data_persistence",
    "transactions": "transactions transaction_hooks backends multiple_database test_utils",
    "regressions": """aggregation_regress defer_regress delete_regress fixtures fixtures_regress extra_regress m2m_regress
        m2m_through_regress managers_regress model_inheritance_regress model_regress select_related_regress serializers signals""",
    "contrib": "auth_tests contenttypes_tests sessions_tests sites_tests redirects_tests flatpages_tests postgres_tests",
}
SAMPLE = ["basic"]
PACKAGES = [f"django=={VERSION}", "psycopg[binary]==3.3.9", "jinja2", "PyYAML", "tblib", "tzdata", "docutils", "Pillow"]


def install(folder):
    environment(folder, "django", PACKAGES)
    sources(folder, "django", VERSION)


def modules(part, tests):
    """Those of a part that this version has."""
    return [name for name in PARTS[part].split() if os.path.isdir(os.path.join(tests, name))]


def command(part, server, folder, seconds):
    tests = os.path.join(sources(folder, "django", VERSION), "tests")
    python = os.path.join(folder, "tools", "django", "bin", "python")
    arguments = ["runtests.py", "--settings=django_settings", "--parallel=1", "--noinput", "-v1", *modules(part, tests)]
    return [python, *arguments], {"SECONDS_PER_TEST": str(seconds)}, tests
