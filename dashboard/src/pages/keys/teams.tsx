import { useState } from 'preact/hooks';
import { api } from '../../api.ts';
import { version } from '../../feed.ts';
import { plural } from '../../format.ts';
import { limitsText } from '../../model/keys.ts';
import type { SpentOf, Team } from '../../model/teams.ts';
import { may } from '../../session.ts';
import { confirm } from '../../ui/confirm.tsx';
import { complain, say } from '../../ui/toasts.tsx';
import { useAnswer } from '../../ui/use-answer.ts';
import { SpentCells, SpentHeadings } from './spent-cells.tsx';
import { TeamDialog } from './team-dialog.tsx';
import { useSpent } from './use-spent.ts';

/** The open dialog. `team` is null for a new team. */
interface OpenTeamDialog {
  readonly team: Team | null;
}

export function Teams() {
  const [answer, again] = useAnswer(
    () => api('GET /teams', { query: { limit: 1_000 } }),
    [version.value],
  );
  const spent = useSpent('team');
  const [open, setOpen] = useState<OpenTeamDialog | null>(null);
  const teams = answer?.ok === true ? (answer.body.teams as Team[]) : [];
  return (
    <section class="keys-list teams" id="teams" aria-labelledby="teams-title">
      <header class="page-head">
        <h2 id="teams-title">Teams</h2>
        {may('admin') && (
          <button type="button" onClick={() => setOpen({ team: null })}>
            New team
          </button>
        )}
      </header>
      {answer?.ok === false && <p role="alert">{answer.problem.detail}</p>}
      {answer?.ok === true && teams.length === 0 && (
        <p class="help">
          No teams yet. Set the team of a key, and the costs of all its keys appear here together. A
          team can also have limits and a budget.
        </p>
      )}
      {teams.length > 0 && (
        <TeamTable
          teams={teams}
          spent={spent}
          onEdit={(team) => setOpen({ team })}
          onRemove={(team) => void remove(team).then(again)}
        />
      )}
      {open !== null && (
        <TeamDialog
          team={open.team}
          etag={answer?.etag ?? null}
          onClose={() => setOpen(null)}
          onChanged={again}
        />
      )}
    </section>
  );
}

function TeamTable(props: {
  readonly teams: readonly Team[];
  readonly spent: ReadonlyMap<string, SpentOf> | null;
  readonly onEdit: (team: Team) => void;
  readonly onRemove: (team: Team) => void;
}) {
  const { teams, spent, onEdit, onRemove } = props;
  return (
    <div class="table" tabIndex={0} role="region" aria-label="Table of teams">
      <table>
        <thead>
          <tr>
            <th scope="col">Team</th>
            <th scope="col" class="number">
              Keys
            </th>
            <SpentHeadings />
            <th scope="col">Limits</th>
            <th scope="col">
              <span class="visually-hidden">Actions</span>
            </th>
          </tr>
        </thead>
        <tbody>
          {teams.map((team) => (
            <tr key={team.id}>
              <th scope="row">
                <code>{team.id}</code>
                {team.note !== '' && <small>{team.note}</small>}
              </th>
              <td class="number" title={team.keys.join(', ')}>
                {team.keys.length}
              </td>
              <SpentCells of={spent?.get(team.id)} />
              <td class="wrap">{limitsText(team) ?? <span class="dim">none</span>}</td>
              <td>
                {may('admin') && (
                  <div class="key-actions">
                    <button
                      type="button"
                      aria-label={`Edit team ${team.id}`}
                      onClick={() => onEdit(team)}
                    >
                      Edit
                    </button>
                    {team.is_listed && (
                      <button
                        type="button"
                        class="danger"
                        aria-label={`Remove limits of team ${team.id}`}
                        onClick={() => onRemove(team)}
                      >
                        Remove limits
                      </button>
                    )}
                  </div>
                )}
              </td>
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}

async function remove({ id, keys }: Team): Promise<void> {
  const says = (
    <p>
      Its limits and its budget no longer apply. {plural(keys.length, 'key')} still{' '}
      {keys.length === 1 ? 'belongs' : 'belong'} to it, so its costs are reported as before.
    </p>
  );
  const title = `Remove the limits of ${id}?`;
  if (!(await confirm({ title, says, verb: 'Remove limits' }))) return;
  const result = await api('DELETE /teams/{id}', { params: { id } });
  if (result.ok) say(`Removed the limits of ${id}.`);
  else complain(result.problem.detail);
}
