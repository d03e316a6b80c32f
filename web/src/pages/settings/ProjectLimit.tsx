import { Checkbox, Radio, Stack, Text } from '@mantine/core';
import { useMutation, useQueryClient } from '@tanstack/react-query';
import { useState } from 'react';
import type { LimitView, MemberChangedView, MemberView } from '../../../../src/dashboard/views/settings.ts';
import { api } from '../../api.ts';
import { usePlace } from '../../session.tsx';
import { FormEnd } from '../../ui/FormEnd.tsx';
import { Modal } from '../../ui/Modal.tsx';
import { Loaded } from '../../ui/states.tsx';
import { useProjects } from '../keys/projects.ts';
import { KeysOutside } from './KeysOutside.tsx';

/** Roles of members who may be limited to projects. */
export function isLimitable(role: string): boolean {
  return role === 'developer' || role === 'viewer';
}

/** Tells in words what somebody is limited to. */
export function limitText(projects: LimitView): string {
  if (projects === null) return 'All projects';
  return projects.map(({ name }) => name).join(', ') || 'No project: sees nothing';
}

type FieldsProps = {
  /** Ids; null: all of the account. */
  chosen: readonly string[] | null;
  choose: (chosen: readonly string[] | null) => void;
};

/** All projects, or those that are ticked. */
export function ProjectLimitFields({ chosen, choose }: FieldsProps) {
  const { account } = usePlace();
  const query = useProjects();
  return (
    <Stack gap="sm">
      <Radio.Group
        label="Projects"
        value={chosen === null ? 'all' : 'some'}
        onChange={(value) => choose(value === 'all' ? null : [])}
      >
        <Stack gap="xs" mt="xs">
          <Radio value="all" label="All projects" description={`Sees all of ${account.name}, its balance too.`} />
          <Radio
            value="some"
            label="Only some projects"
            description="Sees keys, calls, tasks and spending of these, and nothing of the account as a whole."
          />
        </Stack>
      </Radio.Group>
      {chosen !== null && (
        <Loaded query={query} height={80}>
          {({ data }) => (
            <Checkbox.Group label="The projects" value={[...chosen]} onChange={choose}>
              <Stack gap="xs" mt="xs">
                {data
                  .filter(({ id, state }) => state === 'active' || chosen.includes(id))
                  .map(({ id, name, state }) => (
                    <Checkbox key={id} value={id} label={state === 'active' ? name : `${name} (archived)`} />
                  ))}
              </Stack>
            </Checkbox.Group>
          )}
        </Loaded>
      )}
      {chosen?.length === 0 && (
        <Text size="sm" role="status">
          Without a project, they see nothing of the account.
        </Text>
      )}
    </Stack>
  );
}

/** Sets the projects of a member. */
export function LimitMember({ member, close }: { member: MemberView; close: () => void }) {
  const { account, base } = usePlace();
  const queries = useQueryClient();
  const [chosen, choose] = useState<readonly string[] | null>(member.projects?.map(({ id }) => id) ?? null);
  const { mutate, error, isPending, data } = useMutation({
    mutationFn: () => api.patch<MemberChangedView>(`${base}/team/${member.user_id}`, { projects: chosen }),
    onSuccess: async ({ keys_outside }) => {
      await queries.invalidateQueries({ queryKey: [account.id, 'team'] });
      if (keys_outside.length === 0) close();
    },
  });
  if (data && data.keys_outside.length > 0)
    return (
      <Modal opened onClose={close} title={`Projects of ${member.name}`}>
        <KeysOutside name={member.name} keys={data.keys_outside} close={close} />
      </Modal>
    );
  return (
    <Modal opened onClose={close} title={`Projects of ${member.name}`}>
      <form
        onSubmit={(event) => {
          event.preventDefault();
          mutate();
        }}
      >
        <Stack>
          <ProjectLimitFields chosen={chosen} choose={choose} />
          <Text size="sm" c="dimmed">
            It counts at once. Keys that they made before go on working as they are: rotate those that read more than
            they may see.
          </Text>
          <FormEnd word="Save" isPending={isPending} error={error} cancel={close} />
        </Stack>
      </form>
    </Modal>
  );
}
