"""Django's own tests of models, queries, fields, schema changes, migrations and transactions, with psycopg 3."""

import os

from python import environment, sources

NAME = "Django 5.2.19"
VERSION = "5.2.19"
# Those that ask a database, by what they are about; left out are those of templates, forms, the admin pages, HTTP, files and other parts of
# Django. Each module is a part: its tables stand beside no others.
THEMES = {
    "models": """basic bulk_create custom_columns custom_managers custom_methods custom_pk defer delete distinct_on_fields empty
        get_or_create get_object_or_404 get_earliest_or_latest force_insert_update known_related_objects save_delete_hooks
        select_for_update update update_only_fields composite_pk field_defaults model_inheritance proxy_models
        proxy_model_inheritance generic_relations order_with_respect_to properties signals swappable_models validation""",
    "queries": """queries lookup custom_lookups or_lookups xor_lookups null_queries reverse_lookup string_lookup ordering raw_query
        filtered_relation aggregation annotations expressions expressions_case expressions_window prefetch_related select_related
        select_related_onetoone null_fk null_fk_ordering queryset_pickle pagination""",
    "types": "model_fields db_functions datatypes dates datetimes timezones db_typecasts db_utils field_subclassing from_db_value max_lengths",
    "relations": """foreign_object m2m_and_m2o m2m_intermediary m2m_multiple m2m_recursive m2m_signals m2m_through m2o_recursive
        many_to_many many_to_one many_to_one_null one_to_one nested_foreign_keys mutually_referential""",
    "schema": """schema indexes model_indexes introspection inspectdb unmanaged_models constraints migrations
        custom_migration_operations migrate_signals migration_test_data_persistence""",
    "transactions": "transactions transaction_hooks backends multiple_database test_utils",
    "regressions": """aggregation_regress defer_regress delete_regress fixtures fixtures_regress extra_regress m2m_regress
        m2m_through_regress managers_regress model_inheritance_regress model_regress null_fk select_related_regress serializers""",
    "contrib": "auth_tests contenttypes_tests sessions_tests sites_tests redirects_tests flatpages_tests postgres_tests",
}
PARTS = {module: theme for theme, modules in THEMES.items() for module in modules.split()}
SAMPLE = ["basic", "lookup", "transactions"]
PACKAGES = [f"django=={VERSION}", "psycopg[binary,pool]==3.3.9", "jinja2", "PyYAML", "tblib", "tzdata", "docutils", "Pillow"]


def install(folder):
    environment(folder, "django", PACKAGES)
    sources(folder, "django", VERSION)


def command(part, server, folder, seconds):
    tests = os.path.join(sources(folder, "django", VERSION), "tests")
    python = os.path.join(folder, "tools", "django", "bin", "python")
    arguments = ["runtests.py", "--settings=django_settings", "--parallel=1", "--noinput", "-v1", part]
    return [python, *arguments], {"SECONDS_PER_TEST": str(seconds)}, tests
