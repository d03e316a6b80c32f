import { ActionIcon, Box, Button, FileButton, Group, Input, Text, TextInput } from '@mantine/core';
import { ArrowUpTrayIcon, TrashIcon } from '@heroicons/react/24/outline';
import { useMutation } from '@tanstack/react-query';
import { useState, type DragEvent } from 'react';
import type { UploadView } from '../../../../../src/dashboard/views/playground.ts';
import { api } from '../../../api.ts';
import { usePlace } from '../../../session.tsx';
import { mediaOf, titleOf, type MediaKind } from '../../../ui/schema.ts';
import { record_seconds_max, RecordButton, RecorderPlace, useRecorder } from '../record/RecordPart.tsx';
import { labelsOf, type ControlProps } from './control-labels.ts';
import { addPreview, previewOf } from './previews.ts';

/** A field that takes one file. */
export function MediaControl(props: ControlProps) {
  const { field, value, onChange, disabled } = props;
  const { label, description, withAsterisk, error } = labelsOf(props);
  return (
    <Input.Wrapper {...{ label, description, withAsterisk, error }} labelElement="div">
      <MediaInput
        kind={mediaOf(field) ?? 'image'}
        label={titleOf(field)}
        value={typeof value === 'string' ? value : undefined}
        onChange={onChange}
        disabled={disabled}
      />
    </Input.Wrapper>
  );
}

type Props = {
  kind: MediaKind;
  label: string;
  value: string | undefined;
  onChange: (value: string | undefined) => void;
  disabled: boolean;
  /** A link counts when it is complete: what appears at its first letter would take the focus away. */
  late?: boolean;
  /** One of several, with a button beside it that takes it away. */
  in_list?: boolean;
};

const things: Record<MediaKind, string> = { image: 'an image', audio: 'an audio file', video: 'a video' };

/** A file by dropping or choosing it, which uploads it, or by its link. */
export function MediaInput({ kind, label, value, onChange, disabled, late = false, in_list = false }: Props) {
  const [over, setOver] = useState(false);
  const recorder = useRecorder();
  const upload = useUpload(onChange);
  const drop = (event: DragEvent) => {
    event.preventDefault();
    setOver(false);
    const file = event.dataTransfer.files[0];
    if (file && !disabled) upload.mutate(file);
  };
  if (value !== undefined && !isLink(value)) {
    return <Chosen {...{ kind, label, value, disabled, in_list }} clear={() => onChange(undefined)} />;
  }
  if (in_list) return <LinkBox {...{ label, value, onChange, disabled, late }} />;
  return (
    <Box
      flex={1}
      mt={4}
      p="sm"
      style={{
        border: `1px dashed ${over ? 'var(--mantine-primary-color-filled)' : 'var(--mantine-color-dimmed)'}`,
        borderRadius: 8,
      }}
      onDragOver={(event) => {
        event.preventDefault();
        setOver(true);
      }}
      onDragLeave={() => setOver(false)}
      onDrop={drop}
    >
      <Group gap="sm">
        <ChooseButton
          kind={kind}
          label={label}
          choose={(file) => upload.mutate(file)}
          is_uploading={upload.isPending}
          disabled={disabled}
        />
        {kind === 'audio' && (
          <RecordButton
            recorder={recorder}
            disabled={disabled || upload.isPending || recorder.is_open}
            size="xs"
            label={`${label}: record`}
          />
        )}
        <Text size="xs" c="dimmed">
          or drop one here, or give its link:
        </Text>
        <LinkBox label={label} value={value} onChange={onChange} disabled={disabled} late={late} />
      </Group>
      <RecorderPlace
        recorder={recorder}
        seconds_max={record_seconds_max}
        take_label="Use the recording"
        take={(file) => upload.mutate(file)}
      />
      {upload.error && (
        <Text size="sm" c="var(--mantine-color-error)" role="alert" mt={4}>
          {upload.error.message}
        </Text>
      )}
    </Box>
  );
}

/** Uploads a file, whose id becomes the value. */
function useUpload(onChange: (id: string) => void) {
  const { base } = usePlace();
  return useMutation({
    mutationFn: async (file: File) => {
      const form = new FormData();
      form.set('file', file);
      const uploaded = await api.post<UploadView>(`${base}/files`, form);
      addPreview(uploaded.id, file);
      return uploaded;
    },
    onSuccess: ({ id }) => onChange(id),
  });
}

type ChooseProps = Pick<Props, 'kind' | 'label' | 'disabled'> & {
  choose: (file: File) => void;
  is_uploading: boolean;
};

function ChooseButton({ kind, label, choose, is_uploading, disabled }: ChooseProps) {
  return (
    <FileButton onChange={(file) => file && choose(file)} accept={`${kind}/*`} disabled={disabled}>
      {(button) => (
        <Button
          {...button}
          size="xs"
          variant="light"
          loading={is_uploading}
          leftSection={<ArrowUpTrayIcon width={16} aria-hidden />}
          aria-label={`${label}: choose ${things[kind]}`}
        >
          Choose {things[kind]}
        </Button>
      )}
    </FileButton>
  );
}

function LinkBox({
  label,
  value,
  onChange,
  disabled,
  late,
}: Omit<Required<Props>, 'kind' | 'value' | 'in_list'> & Pick<Props, 'value'>) {
  const [draft, setDraft] = useState('');
  const tell = (text: string) => onChange(text.trim() === '' ? undefined : text.trim());
  const complete = () => late && draft.trim() !== '' && tell(draft);
  return (
    <TextInput
      flex={1}
      miw={180}
      size="xs"
      type="url"
      aria-label={`${label}: link`}
      placeholder="https://…"
      value={late ? draft : (value ?? '')}
      onChange={({ currentTarget }) => (late ? setDraft(currentTarget.value) : tell(currentTarget.value))}
      onBlur={complete}
      onKeyDown={(event) => {
        if (event.key !== 'Enter' || event.ctrlKey || event.metaKey) return;
        event.preventDefault(); // this Enter means the link, not the run
        complete();
      }}
      disabled={disabled}
    />
  );
}

/** Tells whether the value is a link: it stays a text box while it is being typed. */
function isLink(value: string): boolean {
  return !value.startsWith('file_') && !value.startsWith('data:');
}

type ChosenProps = Pick<Props, 'kind' | 'label' | 'disabled' | 'in_list'> & { value: string; clear: () => void };

function Chosen({ kind, label, value, clear, disabled, in_list }: ChosenProps) {
  const preview = previewOf(value);
  const url = preview?.url;
  return (
    <Group gap="sm" mt={4} flex={1} wrap="nowrap">
      {kind === 'image' && url !== undefined && (
        <img src={url} alt="" style={{ width: 64, height: 64, objectFit: 'cover', borderRadius: 8 }} />
      )}
      {kind === 'audio' && url !== undefined && (
        <audio src={url} controls aria-label={label} style={{ maxWidth: 240 }} />
      )}
      {kind === 'video' && url !== undefined && (
        <video src={url} controls aria-label={label} style={{ maxWidth: 240, maxHeight: 140, borderRadius: 8 }} />
      )}
      <Text size="sm" truncate flex={1}>
        {preview?.name ?? (value.startsWith('data:') ? 'A data URL' : value)}
      </Text>
      {!in_list && (
        <ActionIcon
          variant="subtle"
          color="gray"
          size={36}
          aria-label={`${label}: remove`}
          onClick={clear}
          disabled={disabled}
        >
          <TrashIcon width={18} aria-hidden />
        </ActionIcon>
      )}
    </Group>
  );
}
