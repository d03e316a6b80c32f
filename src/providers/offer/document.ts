import type { Json, MediaKind, ProviderConfig } from '../../catalog/model.ts';
import type { ModelEntry } from '../../catalog/schema.ts';
import type { Guard } from '../../net/guard.ts';

/** Models that are documents which an operator has, such as workflows: of upstreams that have no list of models. */

export type FieldType = 'text' | 'integer' | 'number' | 'boolean' | MediaKind;

/** A field of a document that may be a field of the model's input. */
export type DocumentField = {
  /** Its place in the document; sent back as it is. */
  target: string;
  /** The part of the document that it belongs to, for people. */
  part: string;
  /** Its name there. */
  field: string;
  type: FieldType;
  /** As the document has it. */
  value: string | number | boolean;
  /** A name for callers. */
  name: string;
  /** Most models of this form have it as an input. */
  is_suggested: boolean;
  minimum?: number;
  /** The largest number that makes sense. */
  maximum?: number;
  /** The values that it may have. */
  choices?: readonly string[];
};

/** The upstream's own words for a field. */
export type FieldFacts = Pick<DocumentField, 'type' | 'minimum' | 'maximum' | 'choices'>;

/** By targets; and what of the document the upstream does not have, as sentences. */
export type DocumentFacts = { fields: ReadonlyMap<string, FieldFacts>; problems: readonly string[] };

export type DocumentOffer = { kind: MediaKind; fields: DocumentField[] };

/** A field that an operator chose. Fields of the same name are set together. */
export type ChosenField = { target: string; name: string; maximum?: number };

/** `id`: without the prefix. */
export type DocumentModel = { id: string; name?: string; kind: MediaKind; fields: readonly ChosenField[] };

/** A document that is none, or a choice that does not fit it. The message is a sentence; `field` is what to correct. */
export class DocumentError extends Error {
  override name = 'DocumentError';
  readonly field: 'document' | 'id' | 'fields';

  constructor(field: DocumentError['field'], message: string) {
    super(message);
    this.field = field;
  }
}

/** `noun`: the word for such a document. All throw DocumentError. */
export type Documents = {
  readonly noun: string;
  /** Asks the upstream about a document; what it does not say is left out. */
  ask(document: Json, config: ProviderConfig, parts: { guard: Guard; signal: AbortSignal }): Promise<DocumentFacts>;
  read(document: Json, facts?: DocumentFacts): DocumentOffer;
  /** Returns the model as `medley.yaml` would have it, without a price. */
  entry(
    document: Json,
    model: DocumentModel,
    place: { provider: string; prefix: string; facts?: DocumentFacts },
  ): ModelEntry;
};
