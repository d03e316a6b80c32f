import type { OptionProblem } from '../../../catalog/check-settings.ts';
import { isObject, type Json, type JsonObject } from '../../../catalog/model.ts';
import { allAt, readPath } from '../../http/answer-path.ts';
import type { RunFile } from '../../provider.ts';
import { fill, unknownWords, wordsOf } from './template.ts';

/** Links that are made from what an answer says of a file: its name, its id, or several members of an object. */

const words = ['file', 'file.NAME', 'id', 'model', 'saved.NAME'];

/** Below the address of the provider, or with a host of its own, in which nothing is filled in. */
const link_form = /^(?:\/|https?:\/\/[^\s/$?#@]+\/)[^\s#]*$/;

/** Checks `output.link`. */
export function linkProblems({ link, files }: JsonObject): OptionProblem[] {
  const at = ['output'];
  if (link === undefined) return [];
  if (typeof link !== 'string' || !link_form.test(link)) {
    const message = 'must be a path such as /files/$file/content, or a whole address whose host has no $';
    return [{ field: 'link', message, at }];
  }
  if (files === undefined) return [{ field: 'files', message: 'is required: what $file is in link, such as $.id', at }];
  const [unknown] = unknownWords(link, words);
  if (unknown === undefined) return [];
  const list = words.map((word) => `$${word}`).join(', ');
  return [{ field: 'link', message: `has ${unknown}, which is none of ${list}; a dollar sign is written $$`, at }];
}

/** Values for the template of a link. */
export type LinkValues = { base_url: string; id: string | undefined; model: string; saved: JsonObject };

/** Returns the links to the files that an answer names; those that miss a value are none. */
export function linkedFiles(answer: Json, { link, files }: JsonObject, values: LinkValues): RunFile[] {
  if (typeof link !== 'string') return [];
  const [path = '', ...query] = link.split('?');
  return [files ?? []].flat().flatMap((place) => {
    const position = typeof place === 'string' ? readPath(place) : undefined;
    const named = position ? allAt(answer, position) : [];
    return named.flatMap((value): RunFile[] => {
      const url = linkTo(value, { path, query: query.join('?') }, values);
      return url === undefined ? [] : [{ url }];
    });
  });
}

function linkTo(value: Json, link: { path: string; query: string }, values: LinkValues): string | undefined {
  const { base_url, id, model, saved } = values;
  const is_plain = typeof value === 'string' || typeof value === 'number';
  const filled = {
    ...wordsOf('saved', saved),
    ...(isObject(value) ? wordsOf('file', value) : {}),
    file: is_plain ? String(value) : undefined,
    id,
    model,
  };
  const path = fill(link.path, filled, inLink);
  const query = fill(link.query, filled, (text) => encodeURIComponent(text.toWellFormed()));
  if (path === undefined || query === undefined || dots.test(path)) return undefined;
  const whole = query === '' ? path : `${path}?${query}`;
  return whole.startsWith('/') ? base_url.replace(/\/+$/, '') + whole : whole;
}

/** A name may have folders; none of them leads back. */
function inLink(text: string): string {
  return text.toWellFormed().split('/').map(encodeURIComponent).join('/');
}

const dots = /(?:^|\/)(?:\.|%2e){1,2}(?:\/|$)/i;
