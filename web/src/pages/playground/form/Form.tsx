import { Button, Collapse, Stack } from '@mantine/core';
import { useDisclosure } from '@mantine/hooks';
import { ChevronDownIcon, ChevronRightIcon } from '@heroicons/react/24/outline';
import { fieldsOf, mediaOf, typeOf, type Field } from '../../../ui/schema.ts';
import { Control } from './Control.tsx';
import { problemAt } from './problems.ts';
import type { FormProps } from './control-labels.ts';

/** Optional fields that are in sight; the rest is one click away. */
const shown_max = 5;

/** Controls for an object by its schema, every field of it, whatever it is. */
export function Form({ schema, value, update, problems, path, disabled }: FormProps) {
  const { first, rest } = split(fieldsOf(schema));
  const has_problem = rest.some(({ name }) => problemAt(problems, `${path}.${name}`) !== undefined);
  const is_set = rest.some(({ name }) => value[name] !== undefined);
  const [open, { toggle }] = useDisclosure(is_set);
  const change = (name: string, next: (before: unknown) => unknown) =>
    update((before) => {
      const { [name]: own, ...others } = before;
      const changed = next(own);
      return changed === undefined ? others : { ...before, [name]: changed };
    });
  const control = (field: Field) => (
    <Control
      key={field.name}
      field={field}
      value={value[field.name]}
      onChange={(next) => change(field.name, () => next)}
      update={(next) => change(field.name, next)}
      problems={problems}
      path={`${path}.${field.name}`}
      disabled={disabled}
      renderForm={(form) => <Form {...form} />}
      renderControl={(nested) => <Control {...nested} />}
    />
  );
  const shown = open || has_problem;
  return (
    <Stack gap="md">
      {first.map(control)}
      {rest.length > 0 && (
        <div>
          <Button
            variant="subtle"
            color="gray"
            size="xs"
            onClick={toggle}
            aria-expanded={shown}
            leftSection={
              shown ? <ChevronDownIcon width={16} aria-hidden /> : <ChevronRightIcon width={16} aria-hidden />
            }
          >
            Advanced ({rest.length})
          </Button>
          <Collapse expanded={shown}>
            <Stack gap="md" mt="sm">
              {rest.map(control)}
            </Stack>
          </Collapse>
        </div>
      )}
    </Stack>
  );
}

/** In sight: what is required, what takes files, choices before numbers, up to a screenful. */
function split(fields: Field[]): { first: Field[]; rest: Field[] } {
  const needed = fields.filter((field) => field.required || isMedia(field));
  const others = fields.filter((field) => !needed.includes(field));
  const weight = ({ name, schema }: Field) => (name === 'seed' ? 2 : Array.isArray(schema['enum']) ? 0 : 1);
  const sorted = others.toSorted((a, b) => weight(a) - weight(b));
  const shown = new Set(others.length <= shown_max ? others : sorted.slice(0, shown_max - 1));
  return {
    first: [...needed, ...others.filter((field) => shown.has(field))],
    rest: others.filter((one) => !shown.has(one)),
  };
}

function isMedia(field: Field): boolean {
  if (mediaOf(field)) return true;
  const { items } = field.schema;
  return typeOf(field.schema) === 'array' && typeof items === 'object' && items !== null && 'x-media' in items;
}
