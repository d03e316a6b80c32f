import { readFileSync, statSync } from 'node:fs';
import { dirname, resolve } from 'node:path';
import { own } from './input-schema.ts';
import { isObject, type Json } from './model.ts';
import type { Report } from './report.ts';

/** Options of a route that are long documents, such as a workflow: they stand in a JSON file beside `medley.yaml`. */

class OptionFileError extends Error {
  override name = 'OptionFileError';
}

const file_bytes_max = 2_000_000;

/** Returns a reader of JSON files; a path that is not absolute begins at the folder of `config_file`. */
export function optionFilesBeside(config_file: string): (path: string) => Json {
  return (path) => {
    const text = textOf(resolve(dirname(config_file), path));
    try {
      return JSON.parse(text);
    } catch {
      throw new OptionFileError('is no JSON');
    }
  };
}

function textOf(file: string): string {
  try {
    const { size } = statSync(file);
    if (!statSync(file).isFile()) throw new OptionFileError('is no file');
    if (size > file_bytes_max) throw new OptionFileError(`is larger than ${file_bytes_max / 1_000_000} MB`);
    return readFileSync(file, 'utf8');
  } catch (error) {
    if (error instanceof OptionFileError) throw error;
    const code = error instanceof Error && 'code' in error ? String(error.code) : String(error);
    throw new OptionFileError(code === 'ENOENT' ? 'does not exist' : `cannot be read (${code})`);
  }
}

type Files = {
  fileOptions(provider: string): readonly string[];
  /** Undefined where there are no files beside the text. */
  read: ((path: string) => Json) | undefined;
};

/** Puts what is in the files that routes name in the place of their names. `models` is changed. */
export function fillFromFiles(models: readonly unknown[], files: Files, report: Report): void {
  for (const [index, model] of models.entries()) {
    const routes = isObject(model) ? own(model, 'routes') : undefined;
    for (const [number, route] of (Array.isArray(routes) ? routes : []).entries()) {
      const provider = isObject(route) ? own(route, 'provider') : undefined;
      const options = isObject(route) ? own(route, 'options') : undefined;
      if (typeof provider !== 'string' || !isObject(options)) continue;
      for (const name of files.fileOptions(provider)) {
        const path = own(options, name);
        if (typeof path !== 'string') continue;
        const at = ['models', index, 'routes', number, 'options', name];
        try {
          if (!files.read) throw new OptionFileError('is the name of a file: here its content has to stand');
          options[name] = files.read(path);
        } catch (error) {
          if (!(error instanceof OptionFileError)) throw error;
          report.error(at, `${path}: ${error.message}.`);
        }
      }
    }
  }
}
