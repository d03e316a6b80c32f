import { Badge, Group, Stack, Table, Text, Textarea } from '@mantine/core';
import { isRecord } from '../../api.ts';
import { decimalText } from '../../ui/decimal.ts';
import { ListTable } from '../../ui/ListTable.tsx';
import type { KindOfCall } from './CallPlayground.tsx';

type Input = Record<string, unknown>;

type FormProps = { input: Input; setInput: (input: Input) => void; disabled: boolean };

function ModerationForm({ input, setInput, disabled }: FormProps) {
  const { input: text } = input;
  const is_text = text === undefined || typeof text === 'string';
  return (
    <Textarea
      label="Text"
      description={is_text ? undefined : 'The input has several parts: change it as JSON.'}
      autosize
      minRows={4}
      maxRows={16}
      value={is_text ? (text ?? '') : ''}
      onChange={({ currentTarget }) => setInput({ ...input, input: currentTarget.value })}
      disabled={disabled || !is_text}
      required
    />
  );
}

/** Each input with its flag and its categories, the likeliest first. */
function Judgement({ answer }: { answer: Input }) {
  const results = (Array.isArray(answer['results']) ? answer['results'] : []).filter(isRecord);
  return (
    <Stack>
      {results.map((result, index) => (
        <OneResult key={index} result={result} name={results.length > 1 ? `Input ${index + 1}` : 'The input'} />
      ))}
    </Stack>
  );
}

function OneResult({ result, name }: { result: Input; name: string }) {
  const { flagged } = result;
  const categories = isRecord(result['categories']) ? result['categories'] : {};
  const scores = isRecord(result['category_scores']) ? result['category_scores'] : {};
  const rows = Object.entries(categories)
    .map(([category, is_flagged]) => ({ category, is_flagged: is_flagged === true, score: Number(scores[category]) }))
    .toSorted((a, b) => Number(b.is_flagged) - Number(a.is_flagged) || (b.score || 0) - (a.score || 0));
  return (
    <Stack gap="xs">
      <Group gap="sm">
        <Text fw={600}>{name}</Text>
        <Badge variant="light" tt="none" color={flagged === true ? 'red' : 'teal'}>
          {flagged === true ? 'Flagged' : 'Not flagged'}
        </Badge>
      </Group>
      <ListTable
        caption={`Categories of ${name.toLowerCase()}`}
        columns={[{ name: 'Category' }, { name: 'Flagged' }, { name: 'Score', align: 'right' }]}
      >
        {rows.map(({ category, is_flagged, score }) => (
          <Table.Tr key={category}>
            <Table.Td fw={is_flagged ? 600 : 400}>{category}</Table.Td>
            <Table.Td>{is_flagged ? 'yes' : 'no'}</Table.Td>
            <Table.Td ta="right" className="figure">
              {Number.isFinite(score) ? decimalText(score.toFixed(3)) : '–'}
            </Table.Td>
          </Table.Tr>
        ))}
      </ListTable>
    </Stack>
  );
}

export const moderation: KindOfCall = { path: '/moderations', Form: ModerationForm, Answer: Judgement };
