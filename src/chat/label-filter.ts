/** Filters of lists by what is said of a chat call: by its caller, and by how it failed. */
export type LabelFilter = {
  error_type?: string;
  http_status?: number;
  end_user?: string;
  /** One of the tags in the metadata. */
  tag?: string;
  /** Pairs, all of which a call must have. */
  metadata?: Readonly<Record<string, string>>;
};

/** Returns conditions on the columns of a record. */
export function labelConditions({ error_type, http_status, end_user, tag, metadata }: LabelFilter) {
  return [
    ['error_type = ?', error_type],
    ['status = ?', http_status],
    ['end_user = ?', end_user],
    ['metadata @> ?::jsonb', metadata && JSON.stringify(metadata)],
    ["strpos(metadata ->> 'tags', ?) > 0 and exists (select from tags_in(metadata) where tag = ?)", tag],
  ] as const;
}

/** Returns the labels as `call_words` has them: an index finds the calls that have all of these. */
export function labelsIn({ error_type, http_status, end_user, tag, metadata = {} }: LabelFilter): string[] {
  return [
    ...(error_type === undefined ? [] : [`error ${error_type}`]),
    ...(http_status === undefined || http_status < 400 ? [] : [`status ${http_status}`]),
    ...(end_user === undefined ? [] : [`user ${end_user}`]),
    ...(tag === undefined ? [] : [`tag ${tag}`]),
    ...Object.entries(metadata).map(([name, value]) => `pair ${name} ${value}`),
  ];
}
