import type { PriceView } from './models.ts';

/** A provider that can be chosen by name. */
export type ProviderChoice = {
  name: string;
  title: string;
  /** `shipped`: its models come with Medley; `cloud`: a server of OpenAI's style; `local`: one of the operator's own. */
  group: 'shipped' | 'cloud' | 'local';
  /** Null where the address is not asked for. */
  base_url: string | null;
  allow_private: boolean;
  needs_key: boolean;
};

export type ProviderProtocol = { name: string; title: string };

/** A model that an operator added. */
export type AddedModelView = {
  id: string;
  name: string;
  kind: string;
  upstream_model: string;
  /** The provider's own, in US dollars. */
  list_price: PriceView[];
  /** The price for callers; empty while it is not in use. */
  price: PriceView[];
  /** The margin in percent; null: that of the provider. */
  margin: string | null;
  /** The price was typed, so that no margin counts. */
  has_own_price: boolean;
  /** No list says what the provider asks, so that the operator may. */
  may_type_list_price: boolean;
  /** Switched off on the page of models and routes. */
  is_off: boolean;
  /** The reason why it is not offered. */
  problem: string | null;
};

export type AddedProviderView = {
  name: string;
  title: string;
  preset: string | null;
  adapter: string;
  base_url: string | null;
  /** Its address may be changed. */
  has_address: boolean;
  allow_private: boolean;
  last_four: string | null;
  /** In percent. */
  margin: string;
  prefix: string;
  is_off: boolean;
  problem: string | null;
  models: AddedModelView[];
};

export type AdminProviders = {
  choices: ProviderChoice[];
  protocols: ProviderProtocol[];
  providers: AddedProviderView[];
  /** Names that medley.yaml has. */
  file_providers: readonly string[];
  file: string | null;
  /** Keys are stored encrypted. */
  is_encrypted: boolean;
  currency: string;
  /** The rate from US dollars (list prices) to the currency of prices; null: prices must be typed. */
  usd_rate: string | null;
};

/** A provider that was just added. `is_checked`: its key was tried. */
export type ProviderAdded = { name: string; is_checked: boolean };

export type OfferedModelView = {
  upstream_model: string;
  id: string;
  name: string | null;
  /** Null: of no kind that can be added. */
  kind: string | null;
  /** The operator may say another kind. */
  kinds: readonly string[];
  context_tokens: number | null;
  list_price: PriceView[];
  is_added: boolean;
};

/** `problem`: the reason why the list cannot be read. `may_type`: the operator may type names of models. */
export type ProviderOffer = {
  models: OfferedModelView[];
  problem: string | null;
  may_type: boolean;
  /** Its models are documents of the operator's, such as a "workflow". */
  document: string | null;
};

/** A field of a document that may be one of the model's input. */
export type DocumentFieldView = {
  target: string;
  part: string;
  field: string;
  type: string;
  value: string | number | boolean;
  name: string;
  is_suggested: boolean;
  maximum: number | null;
  /** The number of values that it may have; 0: any. */
  choices: number;
};

/** `problems`: what of the document the machine does not have, as sentences. */
export type DocumentView = { kind: string; fields: DocumentFieldView[]; problems: readonly string[] };

export type ModelsAdded = { added: string[] };
