import { isObject } from './model.ts';
import type { Report } from './report.ts';
import type { AliasEntry } from './alias-schema.ts';
import { suggestion } from './shape.ts';

/** A model that there is, as far as aliases have to know it. */
export type KnownModel = { id: string; kind: string };

/**
 * Checks the aliases of a file beyond their shape. `own`: models of the file; `more`: those that come along, read only if
 * there are aliases; undefined where nobody knows them.
 */
export function checkAliasSection(
  aliases: unknown,
  own_models: readonly unknown[],
  more: () => readonly KnownModel[] | undefined,
  report: Report,
): void {
  if (!isObject(aliases) || Object.keys(aliases).length === 0) return;
  const own = own_models.flatMap((model) =>
    isObject(model) && typeof model['id'] === 'string' ? [{ id: model['id'], kind: String(model['kind']) }] : [],
  );
  const along = more();
  const kinds = new Map([...(along ?? []), ...own].map(({ id, kind }) => [id, kind]));
  const knows_all = along !== undefined;
  const other_names = new Map(own_models.flatMap(otherNames));
  for (const [name, value] of Object.entries<unknown>(aliases)) {
    const at = ['aliases', name];
    const model = other_names.get(name);
    if (kinds.has(name)) report.error(at, `is the id of a model: take another name.`, 'key');
    else if (model !== undefined) report.error(at, `is an alias of ${model} already: take another name.`, 'key');
    if (!report.hasError(at)) checkModels(name, value as AliasEntry, { aliases, kinds, knows_all }, report); // its shape has been checked
  }
}

function otherNames(model: unknown): [string, string][] {
  const { id, aliases } = isObject(model) ? model : {};
  if (typeof id !== 'string' || !Array.isArray(aliases)) return [];
  return aliases.flatMap((alias) => (typeof alias === 'string' ? [[alias, id]] : []));
}

type Names = { aliases: object; kinds: ReadonlyMap<string, string>; knows_all: boolean };

function checkModels(name: string, { models }: AliasEntry, { aliases, kinds, knows_all }: Names, report: Report): void {
  const seen = new Set<string>();
  for (const [index, { model }] of models.entries()) {
    const at = ['aliases', name, 'models', index, 'model'];
    const kind = kinds.get(model);
    if (seen.has(model)) report.error(at, `${model} stands here twice: add its weights.`);
    else if (kind !== undefined && kind !== 'chat') report.error(at, `${model} is no chat model, but one of ${kind}.`);
    else if (kind === undefined && Object.hasOwn(aliases, model))
      report.error(at, `${model} is an alias itself: name the models that it stands for.`);
    else if (kind === undefined && knows_all)
      report.warn(
        at,
        `there is no model ${model} in this file: it is passed over. ${suggestion(model, [...kinds.keys()]) ?? ''}`.trimEnd(),
      );
    seen.add(model);
  }
  if (models.every(({ weight }) => weight === 0))
    report.error(['aliases', name, 'models'], 'must have a weight above 0: no model would get a conversation.');
}
