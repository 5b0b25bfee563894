// The Metal API, as much of it as PyTorch's MPS backend uses. Part of porter's stand-in for Apple's frameworks.
#pragma once
#include <Metal/MTLTypes.h>
#include <Metal/MTLResource.h>
#include <Metal/MTLLibrary.h>
#include <Metal/MTLCommand.h>
#include <Metal/MTLDevice.h>
