import type { Command } from 'commander';
import { dayOf } from '../catalog/dated.ts';
import { compareWithList, type Difference, type UnlistedRoute } from '../catalog/lists/compare.ts';
import { sortExplained } from '../catalog/lists/explained.ts';
import { list_forms, type ListForm } from '../catalog/lists/index.ts';
import { counted } from '../lib/counted.ts';
import { systemClock } from '../lib/clock.ts';
import { default_price_list } from '../catalog/price-list.ts';
import { check_ms_max, checkModels } from '../monitoring/model-check.ts';
import { CommandError, says, withEngine, type CommandResult } from './command.ts';
import { readListAt } from './list-source.ts';
import { survey } from './model-survey.ts';

export function checkCommand(models: Command): void {
  const forms = Object.keys(list_forms).join(', ');
  const check = models
    .command('check [form] [source]')
    .description(
      `compare costs and ends of models with a list of others, or as the daily check does with all lists; exit 1 if they differ. Forms: ${forms}`,
    );
  says(check, (form, source) => {
    if (form === undefined) return compareAll();
    if (source === undefined) throw new CommandError('Name the file or the URL of the list too, or neither.', 2);
    return compare(form, source);
  });
}

/** Makes the daily check now, without its record. Exits with 1 for a list that cannot be read too. */
function compareAll(): Promise<CommandResult> {
  return withEngine(async (app) => {
    const { model_check } = app.catalog.current.settings;
    const price_list = model_check?.price_list ?? default_price_list;
    const { compared, differences, unread } = await checkModels(app, price_list, AbortSignal.timeout(check_ms_max));
    const summary = `${counted(compared, 'route')} compared, ${counted(differences.length, 'difference')}.`;
    return {
      json: { compared, differences, unread },
      text: [...differences, ...unread, summary].join('\n'),
      exit_code: differences.length + unread.length === 0 ? 0 : 1,
    };
  });
}

async function compare(form: string, source: string): Promise<CommandResult> {
  if (!isForm(form))
    throw new CommandError(`${form} is no form of list. There are: ${Object.keys(list_forms).join(', ')}.`, 2);
  const list = await readListAt(form, source, undefined);
  const { surveyed } = await survey();
  const comparison = compareWithList(
    surveyed.map(({ model }) => model),
    list,
    { day: dayOf(systemClock.now()), form },
  );
  const { compared, unlisted } = comparison;
  const { explained, unexplained: differences } = sortExplained(comparison, form);
  const lines = [
    ...differences.map(showDifference),
    `${counted(compared, 'route')} compared, ${counted(differences.length, 'difference')}.`,
    ...(explained.length === 0
      ? []
      : [`${counted(explained.length, 'difference')} of the default catalogue has a known reason.`]),
    ...(unlisted.length === 0 ? [] : [`Not in the list: ${unlisted.map(nameOf).join(', ')}.`]),
  ];
  return {
    json: { compared, differences, explained, unlisted: unlisted.map(nameOf) },
    text: lines.join('\n'),
    exit_code: differences.length === 0 ? 0 : 1,
  };
}

function nameOf({ model, upstream_model }: UnlistedRoute): string {
  return `${model} (${upstream_model})`;
}

function isForm(form: string): form is ListForm {
  return Object.hasOwn(list_forms, form);
}

function showDifference({ model, route, what, ours, theirs }: Difference): string {
  return `${model} (${route}) ${what}: ${ours} here, ${theirs} in the list`;
}
