import { createHash } from 'node:crypto';
import { createReadStream } from 'node:fs';
import { isObject, type Json, type JsonObject } from '../catalog/model.ts';
import type { Call } from '../http/endpoint.ts';
import type { Form } from '../http/form.ts';

/** The parameters of a media call, from JSON or from a form, and the files that came with them. */
export type MediaInput = {
  parameters: JsonObject;
  /** The text that stands for each file in the parameters, and where the file lies. */
  files: ReadonlyMap<string, { path: string; parameter: string }>;
  /** The same for the same request, and for no other. */
  fingerprint: Buffer;
};

export function inputInJson({ path, body = {}, body_bytes }: Call): MediaInput {
  const parameters = isObject(body) ? body : {};
  return { parameters, files: new Map(), fingerprint: Buffer.concat([Buffer.from(`${path}\n`), body_bytes]) };
}

/** `a[b]` in a form is the member b of the object a, `a[]` a list; files are parameters as texts are. */
export async function inputInForm({ path }: Call, form: Form<string>): Promise<MediaInput> {
  const parameters = new Map<string, Json>();
  for (const [name, value] of form.fields) {
    const [, outer, inner] = /^([^[\]]+)\[([^[\]]+)\]$/.exec(name) ?? [];
    if (outer === undefined || inner === undefined) parameters.set(name, value);
    else parameters.set(outer, withMember(parameters.get(outer), inner, value));
  }
  for (const [name, values] of form.lists) parameters.set(name.slice(0, -2), [...values]);
  const files = new Map<string, { path: string; parameter: string }>();
  const digests: Json[] = [];
  for (const [index, file] of form.files.entries()) {
    const text = `attachment:${index}`;
    const parameter = file.name.replace(/\[\d*\]$/, '');
    const before = parameters.get(parameter);
    parameters.set(parameter, before === undefined ? text : [before, text].flat());
    files.set(text, { path: file.value, parameter });
    digests.push(await hashFile(file.value));
  }
  const members = Object.fromEntries(parameters);
  return { parameters: members, files, fingerprint: Buffer.from(JSON.stringify([path, members, digests])) };
}

function withMember(object: Json | undefined, name: string, value: string): JsonObject {
  return Object.fromEntries([...Object.entries(isObject(object) ? object : {}), [name, value]]);
}

async function hashFile(path: string): Promise<string> {
  const hash = createHash('sha256');
  for await (const chunk of createReadStream(path)) hash.update(chunk);
  return hash.digest('hex');
}

/** The parameters without those that are the service's own. */
export function withoutOwn(parameters: JsonObject, names: readonly string[]): JsonObject {
  return Object.fromEntries(Object.entries(parameters).filter(([name]) => !names.includes(name)));
}
