import { Group, List, NumberInput, Progress, Stack, Text, Textarea } from '@mantine/core';
import { useState } from 'react';
import { isRecord } from '../../api.ts';
import { decimalText } from '../../ui/decimal.ts';
import type { KindOfCall } from './CallPlayground.tsx';

type Input = Record<string, unknown>;

type FormProps = { input: Input; setInput: (input: Input) => void; disabled: boolean };

/** A query, and a document in each line. */
function RerankForm({ input, setInput, disabled }: FormProps) {
  const [text, setText] = useState(() => textsIn(input).join('\n'));
  const { query, top_n } = input;
  return (
    <Stack>
      <Textarea
        label="Query"
        autosize
        minRows={1}
        maxRows={6}
        value={typeof query === 'string' ? query : ''}
        onChange={({ currentTarget }) => setInput({ ...input, query: currentTarget.value })}
        disabled={disabled}
        required
      />
      <Textarea
        label="Documents"
        description="One in each line."
        autosize
        minRows={4}
        maxRows={16}
        value={text}
        onChange={({ currentTarget }) => {
          setText(currentTarget.value);
          setInput({ ...input, documents: linesOf(currentTarget.value) });
        }}
        disabled={disabled}
        required
      />
      <NumberInput
        label="Results"
        description="By default all."
        min={1}
        allowDecimal={false}
        maw={200}
        value={typeof top_n === 'number' ? top_n : ''}
        onChange={(value) => {
          const { top_n: _, ...rest } = input;
          setInput(typeof value === 'number' ? { ...rest, top_n: value } : rest);
        }}
        disabled={disabled}
      />
    </Stack>
  );
}

function linesOf(text: string): string[] {
  return text.split('\n').filter((line) => line.trim() !== '');
}

function textsIn({ documents }: Input): string[] {
  if (!Array.isArray(documents)) return [];
  return documents.map((each: unknown) => {
    const text = isRecord(each) ? each['text'] : each;
    return typeof text === 'string' ? text : '';
  });
}

/** The documents of the answer, best first, with their scores. */
function Ranking({ answer, input }: { answer: Input; input: Input }) {
  const texts = textsIn(input);
  const results = (Array.isArray(answer['results']) ? answer['results'] : []).filter(isRecord);
  const ranked = results.map(({ index, relevance_score: score }) => {
    return { text: texts[Number(index)] ?? '', index: Number(index), score: Number(score) };
  });
  const best = Math.max(1, ...ranked.map(({ score }) => score)); // of most models a score is at most 1
  return (
    <List type="ordered" listStyleType="none" spacing="md" aria-label="Documents, the most relevant first">
      {ranked.map(({ text, index, score }) => (
        <List.Item key={index} styles={{ itemWrapper: { display: 'block' }, itemLabel: { display: 'block' } }}>
          <Group justify="space-between" wrap="nowrap" align="flex-start" gap="sm">
            <Text style={{ overflowWrap: 'anywhere' }}>{text}</Text>
            <Text className="figure" fw={600}>
              {decimalText(score.toFixed(3))}
            </Text>
          </Group>
          <Progress
            value={(100 * Math.max(0, score)) / best}
            size="sm"
            mt={4}
            aria-label={`Relevance of document ${index + 1}`}
          />
        </List.Item>
      ))}
    </List>
  );
}

export const rerank: KindOfCall = { path: '/rerank', Form: RerankForm, Answer: Ranking };
