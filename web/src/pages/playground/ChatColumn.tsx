import { Box, Button, Group, Stack, Text } from '@mantine/core';
import { useEffect, useRef } from 'react';
import type { ModelView } from '../../../../src/dashboard/views/models.ts';
import { Card } from '../../ui/Page.tsx';
import { priceTexts } from '../../ui/price.ts';
import { AnswerView } from './AnswerView.tsx';
import { MessageView } from './MessageView.tsx';
import { isAnswering, pathOf, versionsOf, type Thread, type ThreadNode } from './thread.ts';
import type { Conversation } from './useConversation.ts';

type Props = {
  model: ModelView;
  thread: Thread;
  conversation: Conversation;
  /** Answers can be asked for anew. */
  can_call: boolean;
};

/** A column this near to its end follows what comes: whoever reads further up is left there. */
const follows_within_px = 80;

/** The conversation with one model, with the cost of each answer. */
export function ChatColumn({ model, thread, conversation, can_call }: Props) {
  const box = useRef<HTMLDivElement>(null);
  const is_at_end = useRef(true);
  const content = useRef<HTMLDivElement>(null);
  const path = pathOf(thread);
  useEffect(() => {
    if (!content.current) return undefined;
    // Words come, and later colours and formulas: all of them change its height.
    const observer = new ResizeObserver(() => {
      if (box.current && is_at_end.current) box.current.scrollTop = box.current.scrollHeight;
    });
    observer.observe(content.current);
    return () => observer.disconnect();
  }, []);
  const length = path.length;
  const last = path.at(-1);
  useEffect(() => {
    is_at_end.current = true;
  }, [length]);
  return (
    <Card title={model.display_name} style={{ background: 'var(--medley-surface)', minWidth: 0 }}>
      <Box
        ref={box}
        role="log"
        aria-label={`Conversation with ${model.display_name}`}
        aria-busy={isAnswering(thread)}
        tabIndex={0}
        mih={220}
        mah="max(220px, 100dvh - 580px)" // so that the message box below is in sight
        style={{ overflowY: 'auto' }}
        onScroll={({ currentTarget: { scrollTop, scrollHeight, clientHeight } }) => {
          is_at_end.current = scrollHeight - scrollTop - clientHeight < follows_within_px;
        }}
      >
        <Stack gap="md" ref={content}>
          {path.length === 0 && (
            <Text size="sm" c="dimmed">
              {priceTexts(model.pricing).join(', ')}. The cost of each answer is shown below it.
            </Text>
          )}
          {path.map((node, index) => (
            <TurnView
              key={node.id}
              node={node}
              versions={versionsOf(thread, node)}
              model={model}
              number={index + 1}
              conversation={conversation}
              can_call={can_call}
            />
          ))}
          {last && last.turn.role !== 'assistant' && can_call && (
            <Group>
              <Button variant="default" size="xs" onClick={() => conversation.answer(model.id, last.id)}>
                Ask for an answer
              </Button>
            </Group>
          )}
        </Stack>
      </Box>
    </Card>
  );
}

type TurnProps = Omit<Props, 'thread'> & { node: ThreadNode; versions: ThreadNode[]; number: number };

function TurnView({ node, versions, model, number, conversation, can_call }: TurnProps) {
  const { id, turn } = node;
  const pager = {
    ids: versions.map((version) => version.id),
    id,
    show: (version: string) => conversation.show(model.id, version),
  };
  if (turn.role !== 'assistant') {
    return (
      <MessageView
        turn={turn}
        pager={pager}
        edit={can_call ? (text) => conversation.edit(model.id, id, text) : undefined}
      />
    );
  }
  return (
    <AnswerView
      answer={turn}
      name={`answer ${number} of ${model.display_name}`}
      events={conversation.streamOf(id)}
      pager={pager}
      regenerate={can_call ? () => conversation.regenerate(model.id, id) : undefined}
      vote={(vote) => conversation.vote(model.id, id, vote)}
    />
  );
}
