import type { OptionProblem } from '../../catalog/check-settings.ts';
import type { Json, JsonObject } from '../../catalog/model.ts';
import { isDataUrl, readDataUrl } from '../../lib/data-url.ts';
import { allAt, readPath } from './answer-path.ts';
import type { RunFile } from '../provider.ts';

/**
 * The files of an answer of unknown form: every http(s) link and every data URL in it, in its order, each once;
 * where there is none, its text. The route's `output.files` (a path, or a list of them) says where to look, and
 * `output.form` that the texts there are the bytes of files.
 */
export function resultsOf(answer: Json | undefined, output: JsonObject): RunFile[] {
  const values = filesIn(answer, output);
  const texts = [...new Set(values.flatMap((value) => textsIn(value)))];
  const form = forms.find((each) => each === output['form']);
  if (form !== undefined) return texts.map((text) => ({ bytes: Buffer.from(text, form) }));
  const files = texts.flatMap(fileOf);
  if (files.length > 0) return files;
  // A list of texts that are no files is one text in pieces, as it was streamed.
  const text = values.flatMap(piecesOf).join('');
  return text === '' ? [] : [{ text, content_type: 'text/plain' }];
}

/** Returns the values at the route's `output.files`; the whole response if it is not set. */
function filesIn(answer: Json | undefined, { files }: JsonObject): Json[] {
  if (files === undefined) return [answer ?? null];
  return [files].flat().flatMap((place) => {
    const path = typeof place === 'string' ? readPath(place) : undefined;
    return path ? allAt(answer, path) : [];
  });
}

const forms = ['base64', 'hex'] as const;
const output_names = ['files', 'form', 'key'];

/** Checks the `output` of a route of such an adapter. */
export function outputProblems(
  output: JsonObject,
  options: { required: boolean; names?: readonly string[] } = { required: false },
): OptionProblem[] {
  const at = ['output'];
  const { files, form, key } = output;
  const known_names = [...output_names, ...(options.names ?? [])];
  const problems: OptionProblem[] = Object.keys(output)
    .filter((field) => !known_names.includes(field))
    .map((field) => ({ field, message: 'is unknown and has no effect', known_names, at }));
  const places = [files ?? []].flat();
  const is_right = places.length > 0 && places.every((place) => typeof place === 'string' && readPath(place));
  if (files === undefined && options.required) {
    problems.push({ field: 'files', message: 'is required: where the files are, such as $.data.outputs[*]', at });
  }
  if (files !== undefined && !is_right) {
    problems.push({ field: 'files', message: 'must be a path such as $.data.outputs[*].url, or a list of them', at });
  }
  if (form !== undefined && !forms.some((each) => each === form)) {
    problems.push({ field: 'form', message: `must be one of: ${forms.join(', ')}; links and data URLs need none`, at });
  }
  if (key !== undefined && typeof key !== 'boolean')
    problems.push({ field: 'key', message: 'must be true or false', at });
  return problems;
}

const depth_max = 8;

function textsIn(value: Json, depth = 0): string[] {
  if (typeof value === 'string') return [value];
  if (typeof value !== 'object' || value === null || depth > depth_max) return [];
  return Object.values(value).flatMap((member) => textsIn(member, depth + 1));
}

/** The file that a text is: a link, or a data URL. */
export function fileOf(text: string): RunFile[] {
  if (isDataUrl(text)) {
    const file = readDataUrl(text);
    return file ? [{ bytes: file.bytes }] : [];
  }
  return /^https?:\/\/\S+$/i.test(text) ? [{ url: text }] : [];
}

function piecesOf(value: Json): string[] {
  if (typeof value === 'string') return [value];
  return Array.isArray(value) ? value.filter((piece) => typeof piece === 'string') : [];
}
