import { checkAlerts } from './check-alerts.ts';
import { isObject } from './model.ts';
import { valueAt } from '../lib/json-pointer.ts';
import { builtinCatalog } from './builtin.ts';
import { checkAliasSection, type KnownModel } from './check-aliases.ts';
import { checkModels, type ProviderFacts } from './check-models.ts';
import {
  checkCurrencies,
  checkDefaults,
  checkMail,
  checkProvider,
  checkStorage,
  checkStranded,
  checkTools,
  sandbox_name,
  type Surroundings,
} from './check-settings.ts';
import { fillFromFiles } from './option-files.ts';
import type { Problem } from './problem.ts';
import { missingSecret } from './provider-secrets.ts';
import { makeReport, type Report } from './report.ts';
import type { CatalogFile, ProviderEntry } from './schema.ts';
import { default_currencies } from './settings.ts';
import { misshapes } from './shape.ts';
import { checkSignIn } from './sign-in.ts';
import { parseSource } from './source.ts';

/** The content of a file with no mistakes, else all of them; and what is probably one. */
export type FileReadResult =
  | { ok: true; content: CatalogFile; warnings: Problem[] }
  | { ok: false; problems: Problem[] };

/** Reads the text of a `medley.yaml`, YAML or JSON. `file` is how problems call it. */
export function readCatalogFile(text: string, file: string, surroundings: Surroundings): FileReadResult {
  const source = parseSource(text, file);
  const report = makeReport(source);
  if (source.problems.length === 0) check(source.value, surroundings, report);
  const problems = report.problems();
  if (problems.some(({ severity }) => severity === 'error')) return { ok: false, problems };
  return { ok: true, content: source.value as CatalogFile, warnings: problems }; // its shape has been checked
}

/** Every part with the right shape is checked further, whatever is wrong with the others. */
function check(value: unknown, surroundings: Surroundings, report: Report): void {
  for (const { path, message, target } of misshapes(value)) report.error(path, message, target);
  const currencies = valueAt(value, ['currencies']);
  const rates = isObject(currencies) ? currencies : default_currencies;
  if (isObject(currencies)) checkCurrencies(currencies, report);
  checkStranded(Object.keys(rates), surroundings, report);
  checkBase(value, Object.keys(rates), report);
  checkMail(valueAt(value, ['mail', 'url']), surroundings, report);
  checkSignIn(valueAt(value, ['sign_in']), surroundings, report);
  checkStorage(valueAt(value, ['storage']), surroundings, report);
  checkAlerts(valueAt(value, ['alerts']), surroundings, report);
  const providers = checkProviders(value, surroundings, report);
  const models = valueAt(value, ['models']);
  if (Array.isArray(models)) {
    const fileOptions = (provider: string) => surroundings.fileOptions?.(providers.get(provider)?.adapter ?? '') ?? [];
    fillFromFiles(models, { fileOptions, read: surroundings.readOptionFile }, report);
  }
  checkTools(valueAt(value, ['tools']), idsOf(value, models), surroundings, report);
  if (Array.isArray(models)) checkModels(models, { providers, currencies: Object.keys(rates) }, report);
  const others = () => modelsBeside(value, surroundings);
  checkAliasSection(valueAt(value, ['aliases']), Array.isArray(models) ? models : [], others, report);
}

/** Models that come along with those of the file; undefined where those of the default catalogue are not at hand. */
function modelsBeside(value: unknown, { default_models }: Surroundings): readonly KnownModel[] | undefined {
  const setting = valueAt(value, ['catalog', 'default']);
  const has_defaults = setting !== undefined && setting !== false;
  const sandbox = valueAt(value, ['sandbox']) === false ? [] : (builtinCatalog().models ?? []);
  if (!has_defaults) return sandbox;
  return default_models && [...sandbox, ...default_models()];
}

/** Ids of all models; undefined where some come with the default catalogue. */
function idsOf(value: unknown, models: unknown): string[] | undefined {
  const setting = valueAt(value, ['catalog', 'default']);
  if (setting !== undefined && setting !== false) return undefined;
  return (Array.isArray(models) ? models : []).map((model) => String(isObject(model) ? model['id'] : ''));
}

/** The default catalogue's prices are in dollars, and prices are in the first currency. */
function checkBase(value: unknown, [base]: readonly string[], report: Report): void {
  const setting = valueAt(value, ['catalog', 'default']);
  if (setting === undefined || setting === false || base === default_base) return;
  const message = `the prices of the default catalogue are in ${default_base}: list ${default_base} first in currencies, or set catalog.default to false.`;
  report.error(['catalog', 'default'], message);
}

const [default_base] = Object.keys(default_currencies);

function checkProviders(value: unknown, surroundings: Surroundings, report: Report): Map<string, ProviderFacts> {
  const sandbox = valueAt(value, ['sandbox']) !== false;
  const entries = valueAt(value, ['providers']);
  const providers = new Map<string, ProviderFacts>();
  if (sandbox) {
    const adapter = sandbox_name;
    providers.set(sandbox_name, providerFacts(adapter, surroundings));
  }
  for (const [name, entry] of checkDefaults(valueAt(value, ['catalog', 'default']), surroundings, report)) {
    const absent = missingSecret(entry, surroundings.secret);
    const provider = providerFacts(entry.adapter, surroundings);
    providers.set(name, absent ? { ...provider, missing: absent.reference } : provider);
  }
  for (const [name, entry] of Object.entries(isObject(entries) ? entries : {})) {
    providers.set(name, { adapter: '', serves: () => 'told', optionProblems: () => [], takesMedia: () => true });
    if (report.hasError(['providers', name])) continue;
    const provider = entry as ProviderEntry; // its shape has been checked
    const { adapter } = provider;
    if (checkProvider(name, provider, { sandbox, surroundings }, report)) {
      providers.set(name, providerFacts(adapter, surroundings));
    }
  }
  return providers;
}

function providerFacts(adapter: string, surroundings: Surroundings): ProviderFacts {
  return {
    adapter,
    serves: (kind) => surroundings.canServe(adapter, kind),
    optionProblems: (kind, options, output, input_fields) =>
      surroundings.checkOptions?.(adapter, kind, options, output, input_fields) ?? [],
    takesMedia: () => surroundings.takesMedia?.(adapter) ?? true,
  };
}
