/**
 * The inputs of a service's models by their ids. `npx @medley/client types` writes a file that fills it; without that
 * file, inputs are not checked.
 */
export interface ModelInputs {}

/** Has `closed: true` where the file was written with `--closed`: other ids are mistakes then. */
export interface ModelRules {}

/** The id of a model. Editors offer those of `ModelInputs`. */
export type ModelId = ModelRules extends { closed: true }
  ? keyof ModelInputs
  : keyof ModelInputs | (string & Record<never, never>);

/** The input of a model; anything for a model that `ModelInputs` does not have. */
export type InputOf<Id extends string> = Id extends keyof ModelInputs ? ModelInputs[Id] : Record<string, unknown>;
