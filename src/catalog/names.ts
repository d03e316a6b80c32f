import { ApiError } from '../errors.ts';
import { unknownModel, wrongKind } from './model-errors.ts';
import type { Model } from './model.ts';

/** Names of models: their ids, the aliases that the operator gives them, and ids without what stands before the slash. */

/** The models that callers can name. */
export type NamedModels = {
  readonly models: ReadonlyMap<string, Model>;
  readonly retired: ReadonlyMap<string, Model>;
  /** Names for several chat models each, which only chats choose among. */
  readonly aliases: ReadonlyMap<string, unknown>;
};

/** Returns the model of this name; throws ApiError 404, which names all models that a name may mean, in `param`. */
export function modelNamed({ models, retired, aliases }: NamedModels, name: string, param: string): Model {
  const model = models.get(name);
  if (model) return model;
  const retirement = retired.get(name)?.retirement;
  if (retirement) throw unknownModel(name, param, retirement);
  if (aliases.has(name)) throw wrongKind({ id: name, kind: 'chat' }, param);
  const [only, ...others] = namesOf(models).get(name) ?? [];
  if (!only) throw unknownModel(name, param);
  if (others.length === 0) return only;
  const meant = [only, ...others].slice(0, shown_max).map(({ id }) => id);
  const message = `${JSON.stringify(name)} may be ${meant.join(' or ')}: name one of them.`;
  throw new ApiError('not_found', message, { param, code: 'model_not_found' });
}

const shown_max = 8;

/** Returns the other names under which a model alone is found. */
export function aliasesOf({ models, aliases }: Omit<NamedModels, 'retired'>, model: Model): string[] {
  const names = [...model.aliases, shortName(model.id)];
  const meanings = namesOf(models);
  return [...new Set(names)].filter((name) => {
    const [only, ...others] = meanings.get(name) ?? [];
    return only?.id === model.id && others.length === 0 && !models.has(name) && !aliases.has(name);
  });
}

/** The id without what stands before its last slash. */
function shortName(id: string): string {
  return id.slice(id.lastIndexOf('/') + 1);
}

type Names = ReadonlyMap<string, readonly Model[]>;

/** A catalogue never changes. */
const names_by_models = new WeakMap<ReadonlyMap<string, Model>, Names>();

function namesOf(models: ReadonlyMap<string, Model>): Names {
  const before = names_by_models.get(models);
  if (before) return before;
  const names = readNames(models);
  names_by_models.set(models, names);
  return names;
}

/** An alias says more than the end of an id; of models that are in no list only the aliases count. */
function readNames(models: ReadonlyMap<string, Model>): Names {
  const aliases = new Map<string, Model[]>();
  const short_names = new Map<string, Model[]>();
  for (const model of models.values()) {
    for (const alias of model.aliases) add(aliases, alias, model);
    if (!model.hidden) add(short_names, shortName(model.id), model);
  }
  return new Map([...short_names, ...aliases]);
}

function add(names: Map<string, Model[]>, name: string, model: Model): void {
  const before = names.get(name);
  if (before) before.push(model);
  else names.set(name, [model]);
}
