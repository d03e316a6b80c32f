import type { Json, JsonObject } from '../../catalog/model.ts';

/** The document's entry for a model of POST /v1/generate. */
export type MediaModel = { id: string; name: string; description: string; input_schema: JsonObject };

/** `Input_sandbox_image`, and a number after it for the second of two ids that differ in signs only. */
function componentNames(models: readonly MediaModel[]): Map<MediaModel, string> {
  const taken = new Set<string>();
  return new Map(
    models.map((model) => {
      const base = model.id.replaceAll(/[^A-Za-z0-9]+/g, '_');
      let name = base;
      for (let number = 2; taken.has(name); number++) name = `${base}_${number}`;
      taken.add(name);
      return [model, name];
    }),
  );
}

/** Returns the input of each model, and the body of generate in which it stands. */
export function inputComponents(models: readonly MediaModel[], generate_body: JsonObject): JsonObject {
  const components: JsonObject = {};
  const { properties } = generate_body;
  const others = typeof properties === 'object' && !Array.isArray(properties) ? properties : {};
  for (const [model, name] of componentNames(models)) {
    components[`Input_${name}`] = embedded(model.input_schema, `#/components/schemas/Input_${name}`);
    components[`Generate_${name}`] = {
      title: model.id,
      description: model.description || model.name,
      type: 'object',
      required: ['model', 'input'],
      properties: { ...others, model: { const: model.id }, input: { $ref: `#/components/schemas/Input_${name}` } },
    };
  }
  return components;
}

/** The body of generate: one of the models' own; undefined without models. */
export function perModelBody(models: readonly MediaModel[]): JsonObject | undefined {
  if (models.length === 0) return undefined;
  const references = [...componentNames(models)].map(([model, name]): [string, string] => [
    model.id,
    `#/components/schemas/Generate_${name}`,
  ]);
  return {
    oneOf: references.map(([, $ref]) => ({ $ref })),
    discriminator: { propertyName: 'model', mapping: Object.fromEntries(references) },
  };
}

/**
 * A schema as part of a larger document: what it says of its own identity goes, and references into
 * itself lead to where it stands now.
 */
function embedded(schema: JsonObject, pointer: string): JsonObject {
  const { $schema: _dialect, $id: _identity, ...rest } = schema;
  return moved(rest, pointer);
}

function moved(schema: JsonObject, pointer: string): JsonObject {
  return Object.fromEntries(
    Object.entries(schema).map(([key, value]) => [
      key,
      key === '$ref' && typeof value === 'string' && value.startsWith('#')
        ? pointer + value.slice(1)
        : movedMember(value, pointer),
    ]),
  );
}

function movedMember(value: Json, pointer: string): Json {
  if (Array.isArray(value)) return value.map((item) => movedMember(item, pointer));
  return typeof value === 'object' && value !== null ? moved(value, pointer) : value;
}
