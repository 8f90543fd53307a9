import type { ClientRequestArgs } from 'node:http';
import { Agent } from 'node:https';
import { connect as connectTcp, type Socket } from 'node:net';
import { connect as connectTls, type TLSSocket } from 'node:tls';

/** Opens one connection and keeps its TCP socket, because only that can be reset. */
export class TlsAgent extends Agent {
  tcp: Socket | null = null;

  override createConnection(options: ClientRequestArgs): TLSSocket {
    const { host, port } = options;
    const name = host ?? 'localhost';
    this.tcp = connectTcp({ host: name, port: Number(port ?? 443) });
    return connectTls({ socket: this.tcp, servername: name, ALPNProtocols: ['http/1.1'] });
  }
}
