import type { JsonObject } from '../../catalog/model.ts';
import type { Answer } from './http.ts';
import { textIn } from './reading.ts';

/** Helpers for the responses of upstreams that run tasks. */

/** An id: a text, or a whole number as one. */
export function idIn(object: JsonObject, name: string): string | undefined {
  const value = object[name];
  return Number.isSafeInteger(value) ? String(value) : textIn(object, name);
}

/** The id of the run that a submit has made. Without one nobody knows whether there is a run. */
export function runIdIn(object: JsonObject, name: string): string {
  const id = idIn(object, name);
  if (id === undefined) throw new Error('the answer to the submit names no run');
  return id;
}

/** A status word in small letters: its spelling is no promise. */
export function statusIn(object: JsonObject, ...names: string[]): string {
  const word = names.map((name) => textIn(object, name)).find((text) => text !== undefined);
  return (word ?? '').trim().toLowerCase();
}

/** The files behind those links that are there. */
export function filesAt(links: readonly (string | undefined)[]): { url: string }[] {
  return links.flatMap((url) => (url === undefined ? [] : [{ url }]));
}

/** A refusal in a form of the upstream's own, such as a 200 with a code in it, in the usual form. */
export function refusedAs(answer: Answer, status: number, body: JsonObject): Answer {
  return { ...answer, ok: false, status, bytes: Buffer.from(JSON.stringify(body)) };
}

/** A poll that was refused says nothing about the run. */
export function unanswered(answer: Answer): Error {
  return new Error(`the poll was answered ${answer.status}`);
}

/** `base_url` without the version that each path names itself. */
export function withoutVersion(base_url: string, version: RegExp): string {
  const url = new URL(base_url);
  url.pathname = url.pathname.replace(/\/+$/, '').replace(version, '');
  return url.href;
}

/** A name that stands in a path; its slashes stay. */
export function inPath(name: string): string {
  return name.split('/').map(encodeURIComponent).join('/');
}
