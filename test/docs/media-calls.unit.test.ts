import { describe, expect, it } from 'vitest';
import { fieldsOf } from '../../src/catalog/input-schema.ts';
import type { JsonObject } from '../../src/catalog/model.ts';
import { ApiError } from '../../src/errors.ts';
import type { Offer } from '../../src/styles/media-parameters/offer.ts';
import * as tables from '../../src/styles/media-parameters/parameters.ts';
import { readDocument, tableRows } from './document.ts';

const parameters_of: Record<string, tables.Parameters> = {
  images: tables.image_parameters,
  edits: tables.edit_parameters,
  speech: tables.speech_parameters,
  transcriptions: tables.transcription_parameters,
  translations: tables.translation_parameters,
  videos: tables.video_parameters,
};

const words = (cell: string) => cell.split(',').flatMap((word) => /^ *(\w+) *$/.exec(word)?.[1] ?? []);

const rows = tableRows(readDocument('docs/media-calls.md'), 'Call | Parameter').map(
  ([call = '', parameter = '', becomes = '', left_out = '']) => ({
    call,
    names: words(parameter),
    fields: words(becomes.split(';')[0] ?? ''),
    left_out: words(left_out),
  }),
);

function offer(properties: JsonObject): Offer {
  return { model: 'acme/model', kind: 'image', fields: fieldsOf({ type: 'object', properties }), media: [] };
}

function carried(call: string, of: JsonObject, parameters_sent: JsonObject): JsonObject | 'refused' {
  try {
    return tables.mapParameter(offer(of), parameters_of[call] ?? {}, parameters_sent).input;
  } catch (error) {
    if (error instanceof ApiError) return 'refused';
    throw error;
  }
}

describe('docs/media-calls.md', () => {
  it('has every parameter in its table, and no other', () => {
    const everywhere = new Set(['user', 'safety_identifier', 'translate']);
    for (const [call, parameters] of Object.entries(parameters_of)) {
      const documented = rows.filter((row) => row.call === call || (call === 'edits' && row.call === 'images'));
      const own_names = Object.keys(parameters).filter((name) => !everywhere.has(name));
      expect(documented.flatMap(({ names }) => names).toSorted(), call).toEqual(own_names.toSorted());
    }
  });

  it.each(
    rows.flatMap(({ call, names, fields }) =>
      fields.map((field, index) => [call, names[0] ?? '', field, fields, index] as const),
    ),
  )('%s: %s becomes %s before those behind it', (call, parameter, field, fields, index) => {
    const properties = Object.fromEntries(fields.slice(index).map((name) => [name, { type: 'string' }]));
    // A field of the same name as another parameter would be that one.
    expect(carried(call, properties, { [parameter]: 'text' })).toEqual({ [field]: 'text' });
  });

  it.each(rows.flatMap(({ call, names, left_out }) => names.map((name) => [call, name, left_out] as const)))(
    '%s: without a field %s is left out only if it is %j',
    (call, name, left_out) => {
      for (const value of left_out) expect(carried(call, {}, { [name]: value }), value).toEqual({});
      const always = name === 'voice' || name === 'moderation';
      expect(carried(call, {}, { [name]: '77x7' })).toEqual(always ? {} : 'refused');
    },
  );
});
