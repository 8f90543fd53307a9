/**
 * Open dashboards, a process of their own: each reads the live feed of one Headgate, looks for the names of
 * events and throws the rest away.
 */
import { connect, type Socket } from 'node:net';

/** Message of the parent: how many to open, or 0 to close all. */
export interface DashboardsWanted {
  readonly port: number;
  readonly token: string;
  readonly count: number;
}

/** Answer when all have their snapshot, or when all are closed. */
export interface DashboardsSeen {
  /** Since they were opened, by all of them. */
  readonly bytes: number;
  readonly groupsEvents: number;
}

let sockets: Socket[] = [];
let seen = { bytes: 0, groupsEvents: 0 };

function open({ port, token }: DashboardsWanted): Promise<void> {
  return new Promise((resolve, reject) => {
    const socket = connect({ host: '127.0.0.1', port, noDelay: true });
    sockets.push(socket);
    socket.write(
      `GET /admin/api/events HTTP/1.1\r\nhost: localhost\r\naccept: text/event-stream\r\nauthorization: Bearer ${token}\r\n\r\n`,
    );
    socket.on('data', (data) => {
      seen.bytes += data.length;
      // An event may be cut in two where its name stands; one in many thousands.
      if (data.includes('event: groups\n')) seen.groupsEvents += 1;
      if (data.includes('event: snapshot\n')) resolve();
    });
    socket.once('error', reject);
    socket.once('close', () => reject(new Error('the feed was closed')));
  });
}

process.on('message', (wanted: DashboardsWanted) => {
  const work =
    wanted.count === 0
      ? Promise.resolve().then(() => {
          for (const socket of sockets) socket.destroy();
          sockets = [];
        })
      : Promise.all(Array.from({ length: wanted.count }, () => open(wanted)));
  work.then(
    () => {
      process.send?.(seen satisfies DashboardsSeen);
      if (wanted.count === 0) seen = { bytes: 0, groupsEvents: 0 };
    },
    (error: unknown) => {
      console.error(error);
      process.exit(1);
    },
  );
});
process.on('disconnect', () => process.exit());
