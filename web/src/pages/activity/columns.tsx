import { Anchor, Badge, Group, Table, Text } from '@mantine/core';
import { Link } from '@tanstack/react-router';
import type { ReactNode } from 'react';
import type { ActivityLine, ExportColumn } from '../../../../src/dashboard/views/activity.ts';
import { durationText } from '../../ui/duration.ts';
import { Thumbnail } from '../../ui/Thumbnail.tsx';
import { Money } from '../../ui/Money.tsx';
import { CallStatus, Status } from '../../ui/Status.tsx';
import { Time } from '../../ui/Time.tsx';
import { Labels } from './Labels.tsx';
import type { ActivityTab } from './search.ts';

export type ColumnName =
  | 'result'
  | 'request'
  | 'call'
  | 'status'
  | 'model'
  | 'time'
  | 'input'
  | 'output'
  | 'first'
  | 'took'
  | 'cost'
  | 'labels'
  | 'id';

type Line = ActivityLine;
type Look = {
  name: string;
  align?: 'right';
  hidden?: boolean;
  main?: boolean;
  /** Columns of a file in its place. */
  files: readonly ExportColumn[];
  cell: (line: Line) => ReactNode;
};

/** Every column that the lists have, by its name in the browser's memory. */
export const columns: Readonly<Record<ColumnName, Look>> = {
  result: { name: 'Result', hidden: true, files: ['files'], cell: (line) => <Result line={line} /> },
  request: {
    name: 'Prompt',
    main: true,
    files: ['prompt', 'style', 'error_message'],
    cell: (line) => <Request line={line} />,
  },
  call: { name: 'Time', main: true, files: ['time', 'style'], cell: (line) => <Call line={line} /> },
  status: {
    name: 'Status',
    files: ['status', 'http_status', 'finish', 'error_type'],
    cell: (line) => <State line={line} />,
  },
  model: { name: 'Model, key', files: ['model', 'key', 'key_name'], cell: (line) => <ModelCell line={line} /> },
  time: { name: 'Created', files: ['time'], cell: (line) => <Created line={line} /> },
  input: {
    name: 'Input',
    align: 'right',
    files: ['input_tokens', 'cached_input_tokens'],
    cell: (line) => <Input line={line} />,
  },
  output: {
    name: 'Output',
    align: 'right',
    files: ['output_tokens'],
    cell: (line) => <FigureCell>{line.what === 'chat' ? line.output_tokens.toLocaleString('en-US') : '–'}</FigureCell>,
  },
  first: {
    name: 'First token',
    align: 'right',
    files: ['first_content_ms'],
    cell: (line) => <FigureCell>{duration(line.what === 'chat' ? line.first_content_ms : null)}</FigureCell>,
  },
  took: {
    name: 'Took',
    align: 'right',
    files: ['took_ms', 'started_at', 'completed_at'],
    cell: (line) => <FigureCell>{duration(tookMs(line))}</FigureCell>,
  },
  cost: {
    name: 'Cost',
    align: 'right',
    files: ['cost', 'currency'],
    cell: ({ cost }) => (
      <Table.Td ta="right">
        <Money cost={cost} exact="column" />
      </Table.Td>
    ),
  },
  labels: {
    name: 'Labels',
    files: ['user', 'tags', 'metadata'],
    cell: (line) => (
      <Table.Td miw={140} maw={260}>
        <Group gap={4}>
          <Labels of={line} shown_max={4} />
        </Group>
      </Table.Td>
    ),
  },
  id: {
    name: 'Id',
    files: ['id'],
    cell: ({ id }) => (
      <Table.Td>
        <Text size="xs" ff="monospace">
          {id}
        </Text>
      </Table.Td>
    ),
  },
};

/** The columns of each list in their order. The first of `fixed` leads to the line's page, so it cannot go. */
export const offered: Readonly<
  Record<ActivityTab, { names: readonly ColumnName[]; usual: readonly ColumnName[]; fixed: ColumnName }>
> = {
  tasks: {
    names: ['result', 'request', 'status', 'model', 'time', 'took', 'cost', 'labels', 'id'],
    usual: ['result', 'request', 'status', 'model', 'time', 'took', 'cost'],
    fixed: 'request',
  },
  chats: {
    names: ['call', 'model', 'status', 'input', 'output', 'first', 'took', 'cost', 'labels', 'id'],
    usual: ['call', 'model', 'status', 'input', 'output', 'first', 'took', 'cost'],
    fixed: 'call',
  },
  all: {
    names: ['result', 'request', 'status', 'model', 'time', 'input', 'output', 'first', 'took', 'cost', 'labels', 'id'],
    usual: ['result', 'request', 'status', 'model', 'time', 'took', 'cost'],
    fixed: 'request',
  },
};

function duration(ms: number | null): string {
  return ms === null ? '–' : durationText(ms);
}

function tookMs(line: Line): number | null {
  if (line.what === 'chat') return line.total_ms;
  return line.completed_at === null ? null : Date.parse(line.completed_at) - Date.parse(line.created_at);
}

function FigureCell({ children }: { children: ReactNode }) {
  return (
    <Table.Td ta="right" className="figure" style={{ whiteSpace: 'nowrap' }}>
      {children}
    </Table.Td>
  );
}

function Result({ line }: { line: Line }) {
  return <Table.Td w={56}>{line.what === 'task' && <Thumbnail file={line.files[0]} size={40} label="" />}</Table.Td>;
}

function styleOf({ style, stream }: Extract<Line, { what: 'chat' }>): string {
  return `${style}${stream ? ', streamed' : ''}`;
}

function Request({ line }: { line: Line }) {
  const [href, text, note] =
    line.what === 'task'
      ? [`/tasks/${line.id}`, line.prompt ?? line.id, line.error?.message]
      : [`/chats/${line.id}`, `Call, ${styleOf(line)}`, undefined];
  return (
    <Table.Td maw={{ base: 150, sm: 235 }}>
      <Anchor component={Link} to={href} size="sm" truncate display="block">
        {text}
      </Anchor>
      {note !== undefined && (
        <Text size="xs" c="dimmed" truncate>
          {note}
        </Text>
      )}
    </Table.Td>
  );
}

function Call({ line }: { line: Line }) {
  return (
    <Table.Td style={{ whiteSpace: 'nowrap' }}>
      <Anchor component={Link} to={`/chats/${line.id}`} size="sm">
        <Time at={line.created_at} ago />
      </Anchor>
    </Table.Td>
  );
}

function Created({ line }: { line: Line }) {
  return (
    <Table.Td style={{ whiteSpace: 'nowrap' }}>
      <Text size="sm">
        <Time at={line.created_at} ago />
      </Text>
    </Table.Td>
  );
}

function State({ line }: { line: Line }) {
  if (line.what === 'task') {
    return (
      <Table.Td>
        <Status of={line.status} />
      </Table.Td>
    );
  }
  const ok = line.status < 400;
  return (
    <Table.Td>
      <CallStatus status={line.status} />
      <Text size="xs" c="dimmed">
        {(ok ? line.finish : line.error_type) ?? line.status}
      </Text>
    </Table.Td>
  );
}

function ModelCell({ line }: { line: Line }) {
  return (
    <Table.Td>
      <Text size="sm" truncate maw={{ base: 170, xl: 240 }}>
        {line.model}
      </Text>
      <Text size="xs" c="dimmed" truncate maw={{ base: 170, xl: 240 }}>
        {line.what === 'chat' ? `${styleOf(line)}, ` : ''}key {line.key.name}
      </Text>
    </Table.Td>
  );
}

function Input({ line }: { line: Line }) {
  if (line.what === 'task') return <FigureCell>–</FigureCell>;
  return (
    <Table.Td ta="right" className="figure">
      {line.input_tokens.toLocaleString('en-US')}
      {line.cached_input_tokens > 0 && (
        <Badge ml={4} size="xs" variant="light" color="teal" tt="none">
          {line.cached_input_tokens.toLocaleString('en-US')} cached
        </Badge>
      )}
    </Table.Td>
  );
}
