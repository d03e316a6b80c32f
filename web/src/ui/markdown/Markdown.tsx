import './markdown.css';
import { Anchor, Box, Table, Text } from '@mantine/core';
import { memo, useEffect, useMemo, useRef, useState, type ReactNode } from 'react';
import { CodeBlock } from './CodeBlock.tsx';
import { Formula } from './Formula.tsx';
import { nothing_read, readMarkdown, readOn, type Growing } from './read.ts';
import type { Block, Inline, ListItem } from './tree.ts';

type Props = {
  text: string;
  /** More of it is on its way. */
  is_growing: boolean;
  /** Level of the heading above it. */
  below_level: 1 | 2 | 3 | 4;
};

/** A text in Markdown that a model wrote, which may be hostile: it is drawn as elements, and none of it as HTML. */
export function Markdown({ text, is_growing, below_level }: Props) {
  const shown = useUnhurried(text, is_growing);
  const growing = useGrowing(shown, is_growing);
  const whole = useMemo(() => (is_growing ? undefined : readWhole(text, growing)), [text, is_growing, growing]);
  const blocks = whole ?? blocksOf(growing);
  const settled = whole ? whole.length : growing.blocks.length;
  const levels = headingLevels(blocks, below_level);
  return (
    <div className="markdown">
      {blocks.map((block, index) => (
        <BlockView key={index} block={block} level={levels[index] ?? below_level + 1} is_open={index >= settled} />
      ))}
    </div>
  );
}

function blocksOf({ blocks, rest }: Growing): Block[] {
  return [...blocks, ...rest];
}

/** Reads all of it: the end may change what was said before, but mostly does not, and then nothing is drawn again. */
function readWhole(text: string, growing: Growing): Block[] {
  const whole = readMarkdown(text);
  return whole.map((block, index) => {
    const before = growing.blocks[index];
    return before && JSON.stringify(before) === JSON.stringify(block) ? before : block;
  });
}

/** Returns the text of some moments ago: the longer it takes to draw it, the less often it is. */
function useUnhurried(text: string, is_growing: boolean): string {
  const [shown, setShown] = useState(text);
  const latest = useRef(text);
  const timer = useRef<number>(undefined);
  const began_ms = useRef(0);
  const cost_ms = useRef(0);
  latest.current = text;
  useEffect(() => {
    cost_ms.current = began_ms.current === 0 ? 0 : performance.now() - began_ms.current;
  }, [shown]);
  useEffect(() => {
    if (!is_growing || timer.current !== undefined) return;
    timer.current = window.setTimeout(
      () => {
        timer.current = undefined;
        began_ms.current = performance.now();
        setShown(latest.current);
      },
      Math.min(2_000, Math.max(50, 4 * cost_ms.current)),
    );
  }, [text, is_growing, shown]);
  useEffect(() => () => window.clearTimeout(timer.current), []);
  return is_growing ? shown : text;
}

function useGrowing(text: string, is_growing: boolean) {
  const before = useRef(nothing_read);
  return useMemo(() => {
    if (is_growing) before.current = readOn(before.current, text);
    return before.current;
  }, [text, is_growing]);
}

/** No level is left out, whatever the model wrote: whoever goes from heading to heading would look for it. */
function headingLevels(blocks: readonly Block[], below_level: number): number[] {
  let before = below_level;
  return blocks.map((block) => {
    if (block.kind === 'heading') before = Math.min(below_level + block.level, before + 1, 6);
    return before;
  });
}

type BlockProps = { block: Block; level: number; is_open: boolean };

const BlockView = memo(({ block, level, is_open }: BlockProps) => {
  switch (block.kind) {
    case 'heading':
      return (
        <Text fw={650} role="heading" aria-level={level} component="div" size={block.level <= 2 ? 'lg' : 'md'}>
          <Parts parts={block.parts} />
        </Text>
      );
    case 'paragraph':
      return (
        <p>
          <Parts parts={block.parts} />
        </p>
      );
    case 'code':
      return <CodeBlock text={block.text} language={block.language} is_open={is_open} />;
    case 'formula':
      return <Formula tex={block.tex} is_block />;
    case 'quote':
      return (
        <blockquote>
          <Blocks blocks={block.blocks} is_open={is_open} />
        </blockquote>
      );
    case 'list':
      return <List start={block.start} items={block.items} is_open={is_open} />;
    case 'table':
      return <TableView table={block} />;
    case 'rule':
      return <hr />;
  }
});
BlockView.displayName = 'BlockView';

/** Blocks inside of others. Headings in them are words in bold. */
function Blocks({ blocks, is_open }: { blocks: readonly Block[]; is_open: boolean }) {
  return blocks.map((block, index) =>
    block.kind === 'heading' ? (
      <p key={index}>
        <strong>
          <Parts parts={block.parts} />
        </strong>
      </p>
    ) : (
      <BlockView key={index} block={block} level={6} is_open={is_open} />
    ),
  );
}

function List({ start, items, is_open }: { start: number | undefined; items: ListItem[]; is_open: boolean }) {
  const lines = items.map(({ checked, blocks }, index) => (
    <li key={index}>
      {checked !== undefined && <span role="img" aria-label={checked ? 'done:' : 'open:'} data-checked={checked} />}
      <ItemBlocks blocks={blocks} is_open={is_open} />
    </li>
  ));
  return start === undefined ? <ul>{lines}</ul> : <ol start={start}>{lines}</ol>;
}

/** An item of one line has no paragraph around it, which would put space below it. */
function ItemBlocks({ blocks: [first, ...more], is_open }: { blocks: Block[]; is_open: boolean }) {
  if (!first) return null;
  return (
    <>
      {first.kind === 'paragraph' ? (
        <Parts parts={first.parts} />
      ) : (
        <BlockView block={first} level={6} is_open={is_open} />
      )}
      <Blocks blocks={more} is_open={is_open} />
    </>
  );
}

function TableView({ table: { align, header, rows } }: { table: Extract<Block, { kind: 'table' }> }) {
  return (
    <Box className="markdown-table" tabIndex={0} role="group" aria-label="Table">
      <Table withTableBorder withColumnBorders>
        <Table.Thead>
          <Table.Tr>
            {header.map((parts, index) =>
              parts.length === 0 ? (
                <Table.Td key={index} />
              ) : (
                <Table.Th key={index} ta={align[index]}>
                  <Parts parts={parts} />
                </Table.Th>
              ),
            )}
          </Table.Tr>
        </Table.Thead>
        <Table.Tbody>
          {rows.map((cells, row) => (
            <Table.Tr key={row}>
              {cells.map((parts, index) => (
                <Table.Td key={index} ta={align[index]}>
                  <Parts parts={parts} />
                </Table.Td>
              ))}
            </Table.Tr>
          ))}
        </Table.Tbody>
      </Table>
    </Box>
  );
}

function Parts({ parts }: { parts: readonly Inline[] }) {
  return parts.map((part, index) => <Part key={index} part={part} />);
}

function Part({ part }: { part: Inline }): ReactNode {
  switch (part.kind) {
    case 'text':
      return part.text;
    case 'code':
      return <code>{part.text}</code>;
    case 'strong':
      return (
        <strong>
          <Parts parts={part.parts} />
        </strong>
      );
    case 'emphasis':
      return (
        <em>
          <Parts parts={part.parts} />
        </em>
      );
    case 'deleted':
      return (
        <del>
          <Parts parts={part.parts} />
        </del>
      );
    case 'break':
      return <br />;
    case 'link':
      return (
        <Anchor
          href={part.href}
          target="_blank"
          rel="noopener noreferrer nofollow"
          underline="always"
          title={part.href}
        >
          <Parts parts={part.parts} />
        </Anchor>
      );
    case 'image':
      return <img src={part.src} alt={part.text} />;
    case 'formula':
      return <Formula tex={part.tex} is_block={part.is_block} />;
  }
}
