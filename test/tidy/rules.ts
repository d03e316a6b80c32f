import * as code from './code.ts';
import * as holds from './holds.ts';
import * as imports from './imports.ts';
import * as sql from './sql.ts';
import * as text from './text.ts';
import type { Rule } from './tree.ts';
import * as words from './words.ts';

/** The house rules that can be checked, in the order in which they are worth mending. */
export const rules: readonly Rule[] = [
  code.parses,
  imports.known_modules,
  imports.module_order,
  imports.no_cycles,
  imports.narrow_parameters,
  holds.holds_callers,
  imports.no_orphans,
  sql.declared_modules,
  sql.function_files,
  sql.sql_in_its_module,
  code.pgboss_in_one_file,
  code.whole_money,
  code.environment,
  code.provider_names,
  code.style_names,
  code.honest_types,
  words.plain_words,
  code.plain_docstrings,
  code.short_functions,
  code.short_files,
  code.awake_tests,
  code.short_sleeps,
  text.no_marks,
  text.no_machine_paths,
  text.no_registry_hosts,
  text.one_title,
];
