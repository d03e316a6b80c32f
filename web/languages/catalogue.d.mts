import type { Message } from './messages.mjs';
import type { Catalogue } from './po.mjs';

export function languagesIn(web: string): string[];

export function readCatalogue(web: string, language: string): Catalogue;

export function messagesIn(web: string): (Message & { files: string[] })[];

export function translations(
  catalogue: Catalogue,
): (message: { text: string; plural?: string }, file: string) => readonly string[] | undefined;

export function mergeCatalogue(catalogue: Catalogue, messages: readonly (Message & { files: string[] })[]): Catalogue;
