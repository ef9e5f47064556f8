import { AbstractStartedContainer, GenericContainer } from 'testcontainers';

import { ApnsMock } from './index';

/** A container that runs `apns-mock serve`. */
export class ApnsMockContainer extends GenericContainer {
  /** By default the image of the repository's Dockerfile, `apns-mock`. */
  constructor(image?: string);
  /** Adds flags of `apns-mock serve`, such as `'--rules', 'strict'`. */
  withArguments(...args: string[]): this;
  /** Starts the container; resolves when the server is ready. */
  start(): Promise<StartedApnsMockContainer>;
}

export class StartedApnsMockContainer extends AbstractStartedContainer {
  /** Returns a client of the server, with the settings that a provider on this machine needs. */
  getClient(): Promise<ApnsMock>;
}
