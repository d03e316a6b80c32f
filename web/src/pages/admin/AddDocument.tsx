import { Button, FileButton, Group, Stack, Text, Textarea } from '@mantine/core';
import { ArrowUpTrayIcon } from '@heroicons/react/24/outline';
import { useMutation } from '@tanstack/react-query';
import { useState } from 'react';
import type {
  AddedProviderView,
  AdminProviders,
  DocumentView,
} from '../../../../src/dashboard/views/admin-providers.ts';
import { api } from '../../api.ts';
import { FormEnd } from '../../ui/FormEnd.tsx';
import { DocumentForm } from './DocumentForm.tsx';
import { idOfFile } from './document-choice.ts';
import { fieldError, otherError } from '../../ui/field-error.ts';

type Props = { view: AdminProviders; provider: AddedProviderView; noun: string; close: () => void };

/** A document as it was given, and what the service reads in it. */
type Read = { text: string; file: string | undefined; document: DocumentView };

/** Makes a model of a document of the operator's, such as a workflow: first the document, then its fields. */
export function AddDocument({ view, provider, noun, close }: Props) {
  const [read, setRead] = useState<Read>();
  if (!read) return <GiveDocument provider={provider} noun={noun} close={close} next={setRead} />;
  const { text, file, document } = read;
  return (
    <Stack>
      <Group justify="space-between">
        <Text size="sm" c="dimmed" style={{ overflowWrap: 'anywhere' }}>
          {file ?? `A ${noun} that was pasted`}
        </Text>
        <Button size="xs" variant="default" onClick={() => setRead(undefined)}>
          Another {noun}
        </Button>
      </Group>
      <DocumentForm
        view={view}
        provider={provider}
        text={text}
        document={document}
        id={file === undefined ? '' : idOfFile(file)}
        close={close}
      />
    </Stack>
  );
}

type GiveProps = Pick<Props, 'provider' | 'noun' | 'close'> & { next: (read: Read) => void };

function GiveDocument({ provider, noun, close, next }: GiveProps) {
  const [text, setText] = useState('');
  const { mutate, error, isPending, reset } = useMutation({
    mutationFn: async (source: { text: string; file?: File }) => {
      const content = source.file ? await source.file.text() : source.text;
      const document = await api.post<DocumentView>(`/dash/admin/providers/${provider.name}/document`, {
        document: content,
      });
      return { text: content, file: source.file?.name, document };
    },
    onSuccess: next,
    gcTime: 0,
  });
  return (
    <form
      onSubmit={(event) => {
        event.preventDefault();
        mutate({ text });
      }}
    >
      <Stack>
        <Text size="sm">
          Export the {noun} from {provider.title} in its API format: menu “Workflow”, “Export (API)”. Then choose the
          file, or paste its text.
        </Text>
        <Group>
          <FileButton accept="application/json,.json" onChange={(file) => file && mutate({ text: '', file })}>
            {(props) => (
              <Button {...props} variant="default" leftSection={<ArrowUpTrayIcon width={16} aria-hidden />}>
                Choose a file
              </Button>
            )}
          </FileButton>
        </Group>
        <Textarea
          label={`Text of the ${noun}`}
          placeholder="{ … }"
          autosize
          minRows={5}
          maxRows={12}
          autoComplete="off"
          spellCheck={false}
          styles={{ input: { fontFamily: 'var(--mantine-font-family-monospace)', fontSize: 13 } }}
          value={text}
          onChange={({ currentTarget }) => {
            setText(currentTarget.value);
            reset();
          }}
          error={fieldError(error, 'document')}
          data-autofocus
        />
        <FormEnd
          word="Continue"
          color="orange"
          isPending={isPending}
          error={otherError(error, ['document'])}
          cancel={close}
        />
      </Stack>
    </form>
  );
}
